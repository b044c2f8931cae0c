# find_package(sdc): sdc::sdc compiles and launches, sdc::sdcrt launches what was compiled
# ahead of time, sdc::kernels are the kernels of the project, sdc::static is sdc::sdc
# inside of the program.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/sdc-targets.cmake")
if(NOT TARGET sdc::kernels)
    add_library(sdc::kernels STATIC IMPORTED)
    set_target_properties(sdc::kernels PROPERTIES
        IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../libsdckernels.a"
        INTERFACE_LINK_LIBRARIES sdc::sdcrt)
endif()
set(static "${CMAKE_CURRENT_LIST_DIR}/../../libsdc.a")
if(NOT TARGET sdc::static AND EXISTS "${static}")
    add_library(sdc::static STATIC IMPORTED)
    set_target_properties(sdc::static PROPERTIES IMPORTED_LOCATION "${static}"
        INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../include"
        INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
