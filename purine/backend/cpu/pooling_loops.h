// The loops of pooling, for both layouts and all dtypes, in the processor's best vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "purine/backend/cpu/pooling_geometry.h"

namespace purine::cpu {

/// Each function works on the samples [begin, end) of the batch.
void max_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* index,
              std::byte* scratch, std::int64_t begin, std::int64_t end);
void max_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, const std::byte* index,
                       std::byte* dx, std::byte* scratch, std::int64_t begin, std::int64_t end);
/// An index that points into the padding selects 0.
void max_pool_select(const PoolGeometry& geometry, const std::byte* x, const std::byte* index, std::byte* y,
                     std::int64_t begin, std::int64_t end);
void average_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* scratch,
                  std::int64_t begin, std::int64_t end);
void average_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, std::byte* dx,
                           std::byte* scratch, std::int64_t begin, std::int64_t end);

}  // namespace purine::cpu
