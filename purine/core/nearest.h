// The word that was probably meant, for hints.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace purine {

/// Edits that make one word the other: letters put in, left out or replaced, and neighbours swapped (optimal
/// string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that was probably meant, the first of equals; empty if there is none. It is the one that
/// needs the fewest edits, at most 3 and at most a third of the longer one's letters (but always 1). Where
/// none is so near, it is one that has all words of the name between its underscores, or none but such, or
/// has it for initials: `decay` or `wd` for `weight_decay`, `batch_size` for `batch`. Upper and lower case,
/// `-` and `_` are the same here.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace purine
