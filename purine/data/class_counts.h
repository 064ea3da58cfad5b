// Whether the numbers of images in a set's classes look like those of a set that is labelled right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "purine/data/dataset.h"

namespace purine::data {

/// How many images each class has.
std::vector<std::int64_t> class_counts(const Dataset& dataset);

/// What is odd about the counts of classes, a sentence each; nothing about most sets. One image with a wrong,
/// large label makes classes of all labels below it, which no image has: `67 of 78 classes have no image:
/// 10 to 76`. And a class may be far smaller than the others: `class 77 has 1 image, and half of the classes
/// have 6000 or more` (a hundredth of the median is far). Sets whose classes really are of very different
/// sizes are told so too: it is a doubt and no error.
std::vector<std::string> doubts_about(std::span<const std::string> class_names,
                                      std::span<const std::int64_t> counts);

}  // namespace purine::data
