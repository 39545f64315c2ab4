# tuner_embed(OUTPUT FUNCTION FILES...): a source file that defines
#   const std::vector<std::pair<std::string_view, std::string_view>>& tuner::FUNCTION()
# with the path from the repository root and the content of each file; regenerated when one of them changes.
function(tuner_embed output function)
  string(REPLACE ";" "|" files "${ARGN}")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFUNCTION=${function} "-DFILES=${files}" -DROOT=${PROJECT_SOURCE_DIR}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    VERBATIM)
endfunction()

# tuner_digest(OUTPUT FUNCTION FILES...): a source file that defines
#   std::string_view tuner::FUNCTION()
# with a SHA-256 over paths and contents of the files, in their order; regenerated when one of them changes.
function(tuner_digest output function)
  string(REPLACE ";" "|" files "${ARGN}")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFUNCTION=${function} "-DFILES=${files}" -DROOT=${PROJECT_SOURCE_DIR}
            -P ${PROJECT_SOURCE_DIR}/cmake/digest_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/digest_files.cmake
    VERBATIM)
endfunction()
