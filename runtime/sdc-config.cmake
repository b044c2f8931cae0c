# find_package(sdc): sdc::sdc compiles and launches, sdc::sdcrt launches what was compiled
# ahead of time.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/sdc-targets.cmake")
