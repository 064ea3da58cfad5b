// Images decoded and augmented in a second by one core: bench_decode FOLDER [SECONDS].
//
// FOLDER holds folders of images, as `purine train` takes them. Each measurement goes round all images until
// its time (3 seconds by default) is over. The first round is untimed, so that files come from memory.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <functional>

#include "purine/core/error.h"
#include "purine/data/augment.h"
#include "purine/data/dataset.h"

namespace {

using purine::data::Augmentation;
using purine::data::Augmenter;
using purine::data::Dataset;
using purine::data::Image;

using Action = std::function<void(std::int64_t sample)>;

void measure(std::string_view what, const Dataset& dataset, double seconds, const Action& action) {
  for (std::int64_t i = 0; i < dataset.size(); ++i) action(i);
  std::int64_t done = 0;
  // Processor time: what else runs on the machine takes cores away, but hardly changes how long one works.
  const std::clock_t begin = std::clock();
  double elapsed = 0;
  while (elapsed < seconds) {
    action(done++ % dataset.size());
    elapsed = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  const double per_image = elapsed / static_cast<double>(done);
  fmt::print("{:<40} {:8.1f} images/s {:8.3f} ms\n", what, 1 / per_image, 1e3 * per_image);
}

Action augmented(const Dataset& dataset, const Augmentation& augmentation) {
  return [&dataset, augmenter = Augmenter(augmentation, dataset.image_size()), image = Image(),
          file = std::vector<std::byte>(), workspace = Augmenter::Workspace(),
          output = std::vector<float>()](std::int64_t sample) mutable {
    std::optional<Augmenter::Plan> plan;
    dataset.read(sample, image, file, [&](int height, int width) {
      plan = augmenter.plan(height, width, 1, 0, sample);
      return plan->eighths;
    });
    const purine::data::ImageSize size = augmenter.output();
    output.resize(static_cast<std::size_t>(size.channels * size.height * size.width));
    augmenter.apply(image, *plan, output.data(), augmenter.planar(), workspace);
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_decode FOLDER [SECONDS]\n");
    return 2;
  }
  try {
    const purine::data::DatasetPtr dataset = purine::data::open_folder(argv[1]);
    const double seconds = argc > 2 ? std::atof(argv[2]) : 3.0;
    fmt::print("{}: {} images in {} classes, one core\n", argv[1], dataset->size(),
               dataset->class_names().size());
    Image image;
    std::vector<std::byte> file;
    measure("decoded", *dataset, seconds, [&](std::int64_t sample) { dataset->read(sample, image, file); });
    measure("decoded, random_resized to 224, flipped", *dataset, seconds,
            augmented(*dataset, purine::data::photograph_training()));
    measure("decoded, resized to 256, central 224", *dataset, seconds,
            augmented(*dataset, purine::data::photograph_evaluation()));
    Augmentation full = purine::data::photograph_training();
    full.scaled_decoding = false;
    measure("as the second, all decoded in full", *dataset, seconds, augmented(*dataset, full));
  } catch (const purine::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
