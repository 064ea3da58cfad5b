#include "purine/data/sampler.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/random.h"

namespace purine::data {
namespace {

Sampler::Order shuffled(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  Sampler::Order order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0U);
  const Random random(seed, hash_text("data/order"), static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i, i + 1)]);
  return order;
}

}  // namespace

Sampler::Sampler(std::int64_t size, std::int64_t batch, std::uint64_t seed, bool shuffle)
    : size_(size), batch_(batch), seed_(seed), shuffle_(shuffle) {
  if (size < 1 || size > 0xffffffffLL) {
    throw Error("sampler", fmt::format("there are {} samples, expected 1 to 2^32 - 1", size));
  }
  if (batch < 1) throw Error("sampler", fmt::format("a batch has {} samples, expected at least 1", batch));
}

std::int64_t Sampler::batch_size(std::int64_t iteration) const {
  return position(iteration).batch == batches_per_epoch() - 1 ? last_batch_size() : batch_;
}

std::shared_ptr<const Sampler::Order> Sampler::order(std::int64_t epoch) const {
  if (!shuffle_) return nullptr;
  const std::lock_guard lock(mutex_);
  if (kept_[0].epoch != epoch) {
    std::swap(kept_[0], kept_[1]);
    if (kept_[0].epoch != epoch) {
      kept_[0] = {epoch, std::make_shared<const Order>(shuffled(size_, seed_, epoch))};
    }
  }
  return kept_[0].order;
}

std::int64_t Sampler::sample(std::int64_t epoch, std::int64_t place) const {
  PURINE_CHECK(place >= 0 && place < size_);
  const std::shared_ptr<const Order> order_of_epoch = order(epoch);
  return order_of_epoch ? (*order_of_epoch)[static_cast<std::size_t>(place)] : place;
}

}  // namespace purine::data
