// Text from outside, made harmless where it is printed.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

/// One line of printable UTF-8: control characters, bytes that are not UTF-8 and direction overrides become \xNN or
/// \u{N}; a line break becomes a space.
std::string printable(std::string_view text);
/// An HTML code element that Markdown shows as `text`, whatever `text` holds, in tables too.
std::string markdown_code(std::string_view text);
/// For XML text and double-quoted attributes; characters that XML 1.0 forbids become \xNN.
std::string xml_text(std::string_view text);

/// Columns that printable UTF-8 takes on a terminal, a code point counting one.
std::size_t display_width(std::string_view text);

}  // namespace tuner
