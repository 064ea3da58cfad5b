// The word that was probably meant, for hints.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace purine {

/// Edits that make one word the other: letters put in, left out or replaced, and neighbours swapped (optimal
/// string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that needs the fewest edits, the first of equals; empty if none is near: more than a third
/// of the word's letters would change, or more than 3. Upper and lower case, `-` and `_` are the same here.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace purine
