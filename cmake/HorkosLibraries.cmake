# One static library for each folder of src/, and what is built from them.

# horkos_library(<folder> [NO_RECURSE] [OPERATING_SYSTEM] [PATH <path>] [EXCEPT <file>...]
#                [LINKS <folder or library>...])
#
# Makes hk_<folder> from the .c files of src/<folder>. A folder without code yet becomes an
# interface library, so that those above it can already name it. OPERATING_SYSTEM is for the few
# folders that may see more than C17. Only the name of a folder is known by LINKS as hk_<folder>;
# anything else is linked as it stands.
function(horkos_library folder)
    cmake_parse_arguments(PARSE_ARGV 1 arg "NO_RECURSE;OPERATING_SYSTEM" "PATH" "EXCEPT;LINKS")
    if(NOT arg_PATH)
        set(arg_PATH src/${folder})
    endif()
    set(glob GLOB_RECURSE)
    if(arg_NO_RECURSE)
        set(glob GLOB)
    endif()
    file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${arg_PATH}/*.c)
    foreach(file IN LISTS arg_EXCEPT)
        list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${arg_PATH}/${file})
    endforeach()

    if(HORKOS_MUTANTS AND sources)
        horkos_flip(${folder} sources)
    endif()

    if(sources)
        add_library(hk_${folder} STATIC ${sources})
        set(scope PUBLIC)
        if(arg_OPERATING_SYSTEM)
            target_compile_definitions(hk_${folder} PRIVATE _GNU_SOURCE)
        endif()
    else()
        add_library(hk_${folder} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_link_libraries(hk_${folder} ${scope} horkos_flags)
    horkos_pic(${folder} "${arg_PATH}" "${arg_OPERATING_SYSTEM}" "${sources}" "${arg_LINKS}")
    if(HORKOS_MUTANTS AND sources)
        # Several libraries take from one command's outputs: it runs once, before all of them.
        add_dependencies(hk_${folder} horkos_flipped)
    endif()

    foreach(link IN LISTS arg_LINKS)
        if(TARGET hk_${link})
            target_link_libraries(hk_${folder} ${scope} hk_${link})
        elseif(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/src/${link})
            message(FATAL_ERROR "src/${folder} links src/${link}, which stands above it")
        else()
            target_link_libraries(hk_${folder} ${scope} ${link})
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY HORKOS_FOLDERS ${folder})
endfunction()

# horkos_pic(<folder> <path> <operating system> <sources> <links>) compiles a folder of libhorkos a
# second time, for the shared library: without position independence the server's code is smaller.
function(horkos_pic folder path operating_system sources links)
    if(NOT HORKOS_SHARED OR NOT sources OR
       (NOT folder IN_LIST HORKOS_LIBHORKOS_FOLDERS AND NOT path MATCHES "^src/engine/"))
        return()
    endif()
    add_library(hk_${folder}_pic OBJECT ${sources})
    set_target_properties(hk_${folder}_pic PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(hk_${folder}_pic PRIVATE -fno-semantic-interposition)
    target_link_libraries(hk_${folder}_pic PRIVATE horkos_flags)
    if(operating_system)
        target_compile_definitions(hk_${folder}_pic PRIVATE _GNU_SOURCE)
    endif()
    foreach(link IN LISTS links)
        if(link MATCHES "::")
            target_link_libraries(hk_${folder}_pic PRIVATE ${link})
        endif()
    endforeach()
endfunction()

# horkos_flip(<folder> <variable>) exchanges, in the build `mutants`, those files of the list in which
# scripts/flips can flip an operator for what it made of them, and gives base the table of switches.
set(HORKOS_FLIPS ${CMAKE_SOURCE_DIR}/tests/sim/flips.txt)
set(HORKOS_FLIPPED ${CMAKE_BINARY_DIR}/flipped)
function(horkos_flip folder variable)
    get_property(made GLOBAL PROPERTY HORKOS_FLIPPED_FILES)
    if(NOT made)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${HORKOS_FLIPS})
        execute_process(
            COMMAND ${CMAKE_SOURCE_DIR}/scripts/flips files --picks ${HORKOS_FLIPS}
            OUTPUT_VARIABLE made OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        string(REPLACE "\n" ";" made "${made}")
        set(originals ${made})
        list(TRANSFORM originals PREPEND ${CMAKE_SOURCE_DIR}/src/)
        set(outputs ${made} base/flips.c)
        list(TRANSFORM outputs PREPEND ${HORKOS_FLIPPED}/)
        add_custom_command(
            OUTPUT ${outputs}
            COMMAND ${CMAKE_SOURCE_DIR}/scripts/flips apply
                --picks ${HORKOS_FLIPS} --out ${HORKOS_FLIPPED}
            DEPENDS ${CMAKE_SOURCE_DIR}/scripts/flips ${HORKOS_FLIPS} ${originals}
            COMMENT "Flipping operators"
            VERBATIM)
        add_custom_target(horkos_flipped DEPENDS ${outputs})
        set_property(GLOBAL PROPERTY HORKOS_FLIPPED_FILES "${made}")
    endif()
    set(result)
    foreach(source IN LISTS ${variable})
        file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${source})
        if(name IN_LIST made)
            set(source ${HORKOS_FLIPPED}/${name})
        endif()
        list(APPEND result ${source})
    endforeach()
    if(folder STREQUAL "base")
        list(APPEND result ${HORKOS_FLIPPED}/base/flips.c)
    endif()
    set(${variable} ${result} PARENT_SCOPE)
endfunction()

# horkos_engines([EXCEPT <folder>...] [LINKS ...]) makes a library of each folder under src/engine
# and sets HORKOS_ENGINES to their names. Engines never link each other, but what is not one.
function(horkos_engines)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "EXCEPT;LINKS")
    file(GLOB entries LIST_DIRECTORIES true CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/engine/*)
    set(engines)
    foreach(entry IN LISTS entries)
        if(IS_DIRECTORY ${entry})
            get_filename_component(engine ${entry} NAME)
            if(engine IN_LIST arg_EXCEPT)
                continue()
            endif()
            horkos_library(${engine} PATH src/engine/${engine} LINKS ${arg_LINKS})
            list(APPEND engines ${engine})
        endif()
    endforeach()
    set(HORKOS_ENGINES ${engines} PARENT_SCOPE)
    set_property(GLOBAL PROPERTY HORKOS_ENGINES ${engines})
endfunction()

# horkos_program() builds the one binary at the top of the build folder. The subcommands are in
# hk_tools, so that tests can call them; main.c only starts them.
function(horkos_program)
    file(GLOB main CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/tools/main.c)
    if(NOT main)
        return()
    endif()
    add_executable(horkos ${main})
    target_compile_definitions(horkos PRIVATE _GNU_SOURCE)
    target_link_libraries(horkos PRIVATE hk_tools)
    target_link_options(horkos PRIVATE ${HORKOS_LINK_WHOLE})
    set_target_properties(horkos PROPERTIES
        OUTPUT_NAME ${HORKOS_PROGRAM_NAME}
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# horkos_folder_of(<name> <variable>) sets the variable to the folder that a test or benchmark
# belongs to, the part of its name before the first underscore, or to nothing if there is none.
function(horkos_folder_of name variable)
    string(REGEX REPLACE "_.*" "" folder ${name})
    if(NOT TARGET hk_${folder})
        set(folder)
    endif()
    set(${variable} ${folder} PARENT_SCOPE)
endfunction()

# horkos_benchmarks() builds bench/<folder>_<what>_bench.c. They are run by people, not by ctest.
function(horkos_benchmarks)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.c)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        horkos_folder_of(${name} folder)
        if(NOT folder)
            message(WARNING "${name}.c names no folder of src/ and is not built")
            continue()
        endif()
        add_executable(${name} ${source})
        target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
        target_link_libraries(${name} PRIVATE hk_${folder} m)
        target_link_options(${name} PRIVATE ${HORKOS_LINK_WHOLE})
        set_target_properties(${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
    endforeach()
    # The ordered index is compared with LMDB where there is one (liblmdb-dev); nothing else is.
    pkg_check_modules(LMDB QUIET IMPORTED_TARGET lmdb)
    if(LMDB_FOUND AND TARGET store_tree_bench)
        target_compile_definitions(store_tree_bench PRIVATE HORKOS_LMDB=1)
        target_link_libraries(store_tree_bench PRIVATE PkgConfig::LMDB)
    endif()
endfunction()
