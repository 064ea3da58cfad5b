#include "purine/data/memory_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "purine/core/error.h"
#include "purine/core/random.h"

namespace purine::data::internal {
namespace {

std::string name_of_sample(const MemoryImages& images, std::int64_t index) {
  const auto file = std::upper_bound(images.file_ends.begin(), images.file_ends.end(), index);
  const std::size_t number = static_cast<std::size_t>(file - images.file_ends.begin());
  const std::int64_t first = number == 0 ? 0 : images.file_ends[number - 1];
  return fmt::format("{}[{}]", images.files[number], index - first);
}

class MemoryDataset final : public Dataset {
 public:
  explicit MemoryDataset(MemoryImages images) : images_(std::move(images)) {
    class_names_ = images_.class_names;
    image_bytes_ = static_cast<std::size_t>(images_.size.height * images_.size.width * images_.size.channels);
    PURINE_CHECK_EQUAL(images_.pixels.size(), images_.labels.size() * image_bytes_);
    const std::string_view labels(reinterpret_cast<const char*>(images_.labels.data()),
                                  images_.labels.size());
    fingerprint_ =
        hash_text(fmt::format("{} {} {} {:016x} {}", images_.size.channels, images_.size.height,
                              images_.size.width, hash_text(labels), fmt::join(class_names_, "\n")));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.labels.size()); }
  std::int64_t label(std::int64_t index) const override {
    return images_.labels[static_cast<std::size_t>(index)];
  }
  std::optional<ImageSize> image_size() const override { return images_.size; }
  std::string sample_name(std::int64_t index) const override { return name_of_sample(images_, index); }
  void read(std::int64_t index, Image& image, std::vector<std::byte>& /*file*/,
            const ScaleChoice& /*choose_scale*/) const override {
    image.resize(static_cast<int>(images_.size.height), static_cast<int>(images_.size.width),
                 static_cast<int>(images_.size.channels));
    const std::uint8_t* from = images_.pixels.data() + image_bytes_ * static_cast<std::size_t>(index);
    std::copy_n(from, image_bytes_, image.pixels.data());
  }
  bool encoded() const override { return false; }
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  MemoryImages images_;
  std::size_t image_bytes_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

void check_labels(std::string_view component, const MemoryImages& images) {
  for (std::size_t i = 0; i < images.labels.size(); ++i) {
    if (images.labels[i] < images.class_names.size()) continue;
    throw Error(component, fmt::format("label {} is out of range: there are {} classes",
                                       static_cast<int>(images.labels[i]), images.class_names.size()))
        .at(name_of_sample(images, static_cast<std::int64_t>(i)));
  }
}

DatasetPtr make_memory_dataset(MemoryImages images) {
  return std::make_shared<MemoryDataset>(std::move(images));
}

}  // namespace purine::data::internal
