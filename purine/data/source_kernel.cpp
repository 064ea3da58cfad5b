#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "purine/core/random.h"
#include "purine/data/sampler.h"
#include "purine/data/source.h"
#include "purine/program/kernel.h"

namespace purine::data {
namespace {

// Parts of kernels that are quick per sample: as many as fill each with about 64 thousand elements, at
// most 8.
int parts_of(std::int64_t samples, std::int64_t elements) {
  const std::int64_t most = std::clamp<std::int64_t>(samples, 1, 8);
  return static_cast<int>(std::clamp<std::int64_t>(elements / 65536, 1, most));
}

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Range range_of(std::int64_t count, int part, int parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// What one worker needs to bring one sample, used again for the next.
struct Workspace {
  std::vector<std::byte> file;
  Image image;
  Augmenter::Workspace augmenter;
};

class WorkspacePool {
 public:
  std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Workspace>();
    std::unique_ptr<Workspace> workspace = std::move(free_.back());
    free_.pop_back();
    return workspace;
  }
  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

class SourceKernel final : public Kernel {
 public:
  explicit SourceKernel(const BindContext& context)
      : contract_(std::static_pointer_cast<const DataSource>(context.contract.shared_from_this())),
        dataset_(contract_->dataset()),
        augmenter_(contract_->augmenter()),
        part_(contract_->part()),
        seed_(contract_->options().seed.value_or(context.seed)),
        skips_(contract_->options().on_bad_image == OnBadImage::skip),
        sampler_(dataset_.size(), contract_->options().batch, seed_, *contract_->options().shuffle),
        sample_elements_(context.output(0).shape.elements() / std::max<std::int64_t>(contract_->count(), 1)),
        strides_(context.output_layouts[0] == Layout::channels_last ? augmenter_.channels_last()
                                                                    : augmenter_.planar()),
        parts_(dataset_.encoded() ? static_cast<int>(std::max<std::int64_t>(contract_->count(), 1))
                                  : parts_of(contract_->count(), context.output(0).shape.elements())) {}

  int parts() const override { return parts_; }

  void run(const KernelCall& call) override {
    const std::int64_t batch_size = sampler_.batch_size(call.iteration);
    if (batch_size != part_.units) {
      throw Error("data_source",
                  fmt::format("iteration {} has a batch of {} samples, this program's batch has {}",
                              call.iteration, batch_size, part_.units),
                  "an epoch's last batch needs a program of its own batch size");
    }
    const Sampler::Position position = sampler_.position(call.iteration);
    const std::int64_t first = position.batch * sampler_.batch() + part_.begin;
    const std::shared_ptr<const Sampler::Order> order = sampler_.order(position.epoch);
    float* images = call.output<float>(0);
    std::int64_t* labels = call.output<std::int64_t>(1);
    std::unique_ptr<Workspace> workspace = pool_.take();
    const Range range = range_of(contract_->count(), call.part, parts_);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      labels[i] = bring(position.epoch, first + i, order.get(), images + i * sample_elements_, *workspace);
    }
    pool_.give_back(std::move(workspace));
  }

 private:
  // Brings the sample at a place of the epoch, or the next that isn't broken, and returns its label.
  std::int64_t bring(std::int64_t epoch, std::int64_t place, const Sampler::Order* order, float* output,
                     Workspace& workspace) const {
    const std::int64_t size = sampler_.size();
    for (std::int64_t tries = 0; tries < size; ++tries) {
      const std::int64_t at = (place + tries) % size;
      const std::int64_t sample = order != nullptr ? (*order)[static_cast<std::size_t>(at)] : at;
      try {
        bring_sample(epoch, sample, output, workspace);
        return dataset_.label(sample);
      } catch (const Error& error) {
        if (!skips_) throw;
        contract_->skipped().add(dataset_.sample_name(sample), error.message());
      }
    }
    throw Error("data_source", fmt::format("none of the {} images can be read", size));
  }

  void bring_sample(std::int64_t epoch, std::int64_t sample, float* output, Workspace& workspace) const {
    std::optional<Augmenter::Plan> plan;
    const auto choose_scale = [&](int height, int width) {
      plan = augmenter_.plan(height, width, seed_, epoch, sample);
      return plan->eighths;
    };
    dataset_.read(sample, workspace.image, workspace.file, choose_scale);
    if (!plan) choose_scale(workspace.image.height, workspace.image.width);
    augmenter_.apply(workspace.image, *plan, output, strides_, workspace.augmenter);
  }

  std::shared_ptr<const DataSource> contract_;
  const Dataset& dataset_;
  const Augmenter& augmenter_;
  Piece part_;
  std::uint64_t seed_;
  bool skips_;
  Sampler sampler_;
  std::int64_t sample_elements_;
  OutputStrides strides_;
  int parts_;
  mutable WorkspacePool pool_;
};

class SyntheticKernel final : public Kernel {
 public:
  explicit SyntheticKernel(const BindContext& context)
      : contract_(std::static_pointer_cast<const SyntheticSource>(context.contract.shared_from_this())),
        image_(contract_->options().image),
        sample_elements_(image_.channels * image_.height * image_.width),
        channels_last_(context.output_layouts[0] == Layout::channels_last),
        parts_(parts_of(contract_->count(), contract_->count() * sample_elements_)) {
    if (!contract_->options().fixed) return;
    images_.resize(static_cast<std::size_t>(contract_->count() * sample_elements_));
    for (std::int64_t i = 0; i < contract_->count(); ++i) draw(0, i, images_.data() + i * sample_elements_);
  }

  int parts() const override { return parts_; }

  void run(const KernelCall& call) override {
    const std::int64_t iteration = contract_->options().fixed ? 0 : call.iteration;
    const Range range = range_of(contract_->count(), call.part, parts_);
    float* images = call.output<float>(0);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      float* image = images + i * sample_elements_;
      if (images_.empty()) {
        draw(iteration, i, image);
      } else {
        std::copy_n(images_.data() + i * sample_elements_, sample_elements_, image);
      }
      const Random random(contract_->options().seed, hash_text("data/synthetic/label"),
                          static_cast<std::uint64_t>(iteration));
      call.output<std::int64_t>(1)[i] =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(contract_->part().begin + i),
                                                 static_cast<std::uint64_t>(contract_->options().classes)));
    }
  }

 private:
  // Element e of a sample is the same number whatever the layout and the piece.
  void draw(std::int64_t iteration, std::int64_t index, float* image) const {
    const Random random(contract_->options().seed, hash_text("data/synthetic/image"),
                        static_cast<std::uint64_t>(iteration));
    const std::uint64_t blocks = static_cast<std::uint64_t>(sample_elements_ + 3) / 4;
    const std::uint64_t first = static_cast<std::uint64_t>(contract_->part().begin + index) * blocks;
    const std::int64_t plane = image_.height * image_.width;
    constexpr float width = 3.4641016F;  // the square root of 12: variance 1
    for (std::int64_t e = 0; e < sample_elements_; e += 4) {
      const std::array<std::uint32_t, 4> bits = random.block(first + static_cast<std::uint64_t>(e) / 4);
      for (std::int64_t k = 0; k < std::min<std::int64_t>(4, sample_elements_ - e); ++k) {
        const float value = static_cast<float>(bits[static_cast<std::size_t>(k)] >> 8) * 0x1p-24F;
        const std::int64_t element = e + k;
        const std::int64_t to =
            channels_last_ ? element % plane * image_.channels + element / plane : element;
        image[to] = (value - 0.5F) * width;
      }
    }
  }

  std::shared_ptr<const SyntheticSource> contract_;
  ImageSize image_;
  std::int64_t sample_elements_;
  bool channels_last_;
  int parts_;
  std::vector<float> images_;
};

}  // namespace

void register_kernels(KernelRegistry& registry) {
  registry.add("data_source",
               [](const BindContext& context) { return std::make_unique<SourceKernel>(context); });
  registry.add("synthetic_source",
               [](const BindContext& context) { return std::make_unique<SyntheticKernel>(context); });
}

}  // namespace purine::data
