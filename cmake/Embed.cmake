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
