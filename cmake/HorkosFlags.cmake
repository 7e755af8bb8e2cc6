# How every file of horkos is compiled: the language, the warnings, the sanitizers, and the few
# definitions that a build may turn on. One interface target carries them, so that nothing leaks
# into code that is not ours and no folder can quietly choose its own.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# CMake's own flags for this kind of build define NDEBUG; horkos keeps its asserts in production.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(LIBURING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)

# Only the header of xxhash is used (XXH_INLINE_ALL), so there is nothing to link.
find_path(HORKOS_XXHASH_INCLUDE xxhash.h REQUIRED)

add_library(horkos_flags INTERFACE)
target_include_directories(horkos_flags INTERFACE
    ${CMAKE_SOURCE_DIR}/src
    ${CMAKE_SOURCE_DIR}/include)
target_compile_options(horkos_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum -Wvla
    -Wstrict-prototypes -Wmissing-prototypes -Werror)
target_link_libraries(horkos_flags INTERFACE Threads::Threads)

# gcc zeroes and copies structs of 100 bytes with "rep stos" and "rep movs", which take some 30
# cycles before they begin; a write has about thirty of those.
include(CheckCCompilerFlag)
set(HORKOS_SMALL_STRUCTS
    -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign
    -mmemcpy-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
string(REPLACE ";" " " flags "${HORKOS_SMALL_STRUCTS}")
check_c_compiler_flag("${flags}" HORKOS_CHOOSES_STRATEGY)
if(HORKOS_CHOOSES_STRATEGY)
    target_compile_options(horkos_flags INTERFACE ${HORKOS_SMALL_STRUCTS})
endif()

if(HORKOS_DEBUG)
    target_compile_definitions(horkos_flags INTERFACE HK_DEBUG=1)
endif()

# A write crosses a dozen small functions of four folders, so what is called across them is inlined
# when a program is linked. The objects hold ordinary code as well: the tests, of which there are
# many, are linked from that, which takes a tenth of the time.
if(HORKOS_LTO)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
        message(FATAL_ERROR "HORKOS_LTO needs gcc")
    endif()
    target_compile_options(horkos_flags INTERFACE -O3 -flto=auto -ffat-lto-objects)
    set(HORKOS_LINK_WHOLE -O3 -flto=auto)
    set(HORKOS_LINK_APART -fno-lto)
endif()

if(HORKOS_SANITIZE)
    target_compile_options(horkos_flags INTERFACE
        -fsanitize=${HORKOS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(horkos_flags INTERFACE -fsanitize=${HORKOS_SANITIZE})
endif()

if(HORKOS_COVERAGE)
    # Inlined, so that a rule that cannot be switched off here is no branch.
    target_compile_options(horkos_flags INTERFACE -O1 --coverage -fprofile-update=atomic)
    target_link_options(horkos_flags INTERFACE --coverage)
endif()

if(HORKOS_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "HORKOS_FUZZ needs clang: cmake --preset fuzz")
    endif()
    target_compile_options(horkos_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# A build in which protocol rules can be switched off must never be taken for the real one: it has
# its own folder and its binary has its own name.
set(HORKOS_PROGRAM_NAME horkos)
if(HORKOS_MUTANTS)
    if(CMAKE_BINARY_DIR STREQUAL "${CMAKE_SOURCE_DIR}/build")
        message(FATAL_ERROR "build/ is for the release build: cmake --preset mutants")
    endif()
    set(HORKOS_PROGRAM_NAME horkos-mutants)
    target_compile_definitions(horkos_flags INTERFACE HK_MUTANTS=1)
endif()
