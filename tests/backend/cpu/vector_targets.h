// Runs loops with every set of vector instructions that they are compiled for and this processor has.
#pragma once

#include "purine/backend/cpu/simd.h"

// After simd.h, which says for which targets the loops are compiled.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace purine::test {

/// Calls `function` once for each, the portable code included.
template <typename Function>
void with_every_vector_target(Function function) {
  const auto choose = [](std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    choose(target);
    function();
  }
  choose(0);
}

}  // namespace purine::test
