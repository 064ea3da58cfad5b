// Values as JSON, for those who write JSON piece by piece.
#pragma once

#include <string>
#include <string_view>

namespace purine::io {

/// A text with its quotation marks. Bytes that are not UTF-8 become U+FFFD, so the result is JSON whatever
/// the text is.
std::string json_text(std::string_view text);
/// A number in the fewest digits that read back as the same value, with a point or an exponent. JSON has no
/// numbers that are not finite: they become the texts "NaN", "Infinity" and "-Infinity", which Python's
/// float() reads.
std::string json_number(double value);
std::string json_number(float value);

}  // namespace purine::io
