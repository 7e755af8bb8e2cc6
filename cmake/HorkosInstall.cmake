# libhorkos: what a program links that has a node inside (include/horkos.h), and what is installed.

include(GNUInstallDirs)

# horkos_libhorkos() merges the folders that hk_embed stands on into libhorkos.a, and, with
# HORKOS_SHARED, links libhorkos.so of them, which exports the public API and nothing else.
function(horkos_libhorkos)
    set(objects)
    set(pic)
    foreach(folder IN LISTS HORKOS_LIBHORKOS_FOLDERS)
        get_target_property(type hk_${folder} TYPE)
        if(NOT type STREQUAL STATIC_LIBRARY)
            continue() # without code yet
        endif()
        list(APPEND objects $<TARGET_OBJECTS:hk_${folder}>)
        list(APPEND pic $<TARGET_OBJECTS:hk_${folder}_pic>)
    endforeach()
    add_library(horkos_static STATIC ${objects})
    set_target_properties(horkos_static PROPERTIES OUTPUT_NAME horkos LINKER_LANGUAGE C)
    set(targets horkos_static)

    if(HORKOS_SHARED)
        set(map ${CMAKE_SOURCE_DIR}/cmake/libhorkos.map)
        add_library(horkos_shared SHARED ${pic})
        set_target_properties(horkos_shared PROPERTIES
            OUTPUT_NAME horkos
            LINKER_LANGUAGE C
            VERSION ${PROJECT_VERSION}
            SOVERSION ${PROJECT_VERSION_MAJOR}
            LINK_DEPENDS ${map})
        target_link_options(horkos_shared PRIVATE
            -Wl,--version-script=${map} -Wl,-Bsymbolic-functions -Wl,-z,defs
            ${HORKOS_LINK_WHOLE})
        target_link_libraries(horkos_shared PRIVATE horkos_flags PkgConfig::LIBURING
            PkgConfig::SODIUM PkgConfig::INIH PkgConfig::JANSSON m)
        list(APPEND targets horkos_shared)
    endif()

    # The prefix of the file is that of the installation, which may be given only then.
    set(pc ${CMAKE_SOURCE_DIR}/cmake/horkos.pc.in)
    foreach(name CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR PROJECT_DESCRIPTION PROJECT_VERSION)
        install(CODE "set(${name} \"${${name}}\")")
    endforeach()
    install(CODE "configure_file(\"${pc}\" \"${CMAKE_BINARY_DIR}/horkos.pc\" @ONLY)")
    install(FILES ${CMAKE_BINARY_DIR}/horkos.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    install(FILES ${CMAKE_SOURCE_DIR}/include/horkos.h ${CMAKE_SOURCE_DIR}/include/horkos_err.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(TARGETS ${targets}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(TARGETS horkos RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
