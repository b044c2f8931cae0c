# Packages: "ninja packages" makes a .deb and a relocatable tarball of what is installed,
# with libsdc.a, the documents, kernels, examples and everybody's licences.
#
# The tarball runs from any folder: libraries are found by $ORIGIN, pkg-config and CMake
# by where their own files lie. The .deb is installed under /usr. Both need glibc 2.34 and
# nothing else.

set(PACKAGE_DOC share/doc/sdc)

# ---------------------------------------------------------------- libsdc.a
set(wraps "")
foreach(name IN LISTS WRAPPED)
    list(APPEND wraps "-Wl,--wrap=${name}")
endforeach()
add_custom_command(OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/libsdc.a"
    COMMAND bash "${ROOT}/runtime/package/static_library"
        "${CMAKE_CURRENT_BINARY_DIR}/libsdc.a" $<TARGET_FILE:libsdc>
        ${CMAKE_C_COMPILER} ${wraps} ${objects} ${LLVM_FILES} "${STDCXX_FILE}"
        "${ZLIB_FILE}" "${ZSTD_FILE}"
    DEPENDS libsdc "${ROOT}/runtime/package/static_library"
    COMMAND_EXPAND_LISTS COMMENT "libsdc.a" VERBATIM)
add_custom_target(sdc_static DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/libsdc.a")
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/libsdc.a" DESTINATION lib OPTIONAL)

# ---------------------------------------------------------------- files beside the code
install(FILES README.md LICENSE DESTINATION ${PACKAGE_DOC})
install(DIRECTORY docs DESTINATION ${PACKAGE_DOC})
install(DIRECTORY kernels_dsl/ DESTINATION share/sdc/kernels FILES_MATCHING
    PATTERN "*.tk" PATTERN lib EXCLUDE)
add_custom_command(OUTPUT "${GEN}/notices/sdc.txt"
    COMMAND bash "${ROOT}/runtime/package/notices" "${GEN}/notices"
    DEPENDS "${ROOT}/runtime/package/notices" COMMENT "licences" VERBATIM)
add_custom_target(sdc_notices DEPENDS "${GEN}/notices/sdc.txt")
install(DIRECTORY "${GEN}/notices" DESTINATION ${PACKAGE_DOC} OPTIONAL)

# ---------------------------------------------------------------- HTML
# "ninja docs-html": the documents and headers as pages, in html/.
file(GLOB generator CONFIGURE_DEPENDS "${ROOT}/docs/html/*.c")
add_executable(page EXCLUDE_FROM_ALL ${generator})
target_include_directories(page PRIVATE "${ROOT}")
target_compile_options(page PRIVATE ${WARN})
file(GLOB pages RELATIVE "${ROOT}" CONFIGURE_DEPENDS "${ROOT}/docs/*.md"
    "${ROOT}/docs/*/*.md")
list(REMOVE_ITEM pages docs/README.md)
set(pages docs/README.md README.md ${pages} tests/README.md runtime/python/README.md
    runtime/sdc.h runtime/sdc_nn.h runtime/sdc.hpp runtime/rt/sdcrt.h runtime/rt/cuda.h
    runtime/rt/bundle.h runtime/rt/grid.h)
set(HTML "${CMAKE_CURRENT_BINARY_DIR}/html")
list(TRANSFORM pages PREPEND "${ROOT}/" OUTPUT_VARIABLE page_files)
add_custom_command(OUTPUT "${HTML}/index.html"
    COMMAND page "${ROOT}" "${HTML}" ${pages}
    DEPENDS page ${page_files} "${ROOT}/docs/html/style.css"
    COMMENT "documents as HTML" VERBATIM)
add_custom_target(docs-html DEPENDS "${HTML}/index.html")
install(DIRECTORY "${HTML}" DESTINATION ${PACKAGE_DOC} OPTIONAL)

# ---------------------------------------------------------------- cpack
# xz would save a quarter and take minutes.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME sdc)
set(CPACK_PACKAGE_VENDOR sdc)
set(CPACK_PACKAGE_CONTACT "sdc <sdc@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles and runs Triton kernels without Python")
set(CPACK_PACKAGE_DESCRIPTION "sdc takes kernels written in Triton's language to code for
the CPU or for NVIDIA GPUs, as a command and as a C library; no Python is needed.")
set(CPACK_RESOURCE_FILE_LICENSE "${ROOT}/LICENSE")
set(CPACK_PACKAGE_FILE_NAME "sdc-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES OFF) # libsdc.so is; archives keep the symbols that linkers read
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# Said here, since who finds them (dpkg-dev, file) is on no machine that only builds. The
# lint of symbols looks after 2.34; built with a later glibc than 2.36 it is that one.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REGEX MATCH "[0-9.]+$" glibc "${glibc}")
if(NOT glibc VERSION_GREATER 2.36)
    set(glibc 2.34)
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${glibc}), libgcc-s1 (>= 4.2)")
file(WRITE "${GEN}/deb/triggers" "activate-noawait ldconfig\n")
file(WRITE "${GEN}/deb/shlibs" "libsdc 0 sdc\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${GEN}/deb/triggers" "${GEN}/deb/shlibs")
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gcc)
include(CPack)

add_custom_target(packages
    COMMAND ${CMAKE_CPACK_COMMAND}
        --config "${CMAKE_CURRENT_BINARY_DIR}/CPackConfig.cmake"
        -B "${CMAKE_CURRENT_BINARY_DIR}/packages"
    DEPENDS sdc libsdc sdcrt sdckernels sdc_static sdc_notices docs-html
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
    COMMENT "packages" VERBATIM USES_TERMINAL)
