// Sets of labelled images: what a source reads from. Plain classes; the graph knows nothing of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/data/image.h"

namespace purine::data {

/// Which part of a set.
enum class Subset : std::uint8_t { train, test };

/// `train`, `test`.
std::string_view name_of(Subset subset);

/// The extents of images that are all of one size.
struct ImageSize {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  bool operator==(const ImageSize& other) const = default;
};

/// Asked once with the full size of an image that is about to be decoded: answers in eighths (1, 2, 4 or 8)
/// how large it has to be.
using ScaleChoice = std::function<int(int height, int width)>;

/// Labelled images, numbered from 0. Immutable: all functions may be called by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  /// Index in class_names(), for every sample.
  virtual std::int64_t label(std::int64_t index) const = 0;
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// The images' size where all have the same; one channel is grey.
  virtual std::optional<ImageSize> image_size() const = 0;
  /// What a message calls a sample: its file's path, or file and number.
  virtual std::string sample_name(std::int64_t index) const = 0;
  /// Puts an image into `image`; `file` is storage that is used again. Images of 1 or 3 channels come as they
  /// are, and where the format allows as small as `choose_scale` says (Decoder::decode). A broken image
  /// throws Error with the sample's name as its path.
  virtual void read(std::int64_t index, Image& image, std::vector<std::byte>& file,
                    const ScaleChoice& choose_scale = {}) const = 0;
  /// True where reading a sample means decoding a file, which is worth a worker's attention of its own.
  virtual bool encoded() const = 0;
  /// A hash of what the samples are called and of their labels: equal sets of two hosts have equal ones,
  /// wherever they lie.
  virtual std::uint64_t fingerprint() const = 0;

  /// The image alone.
  Image read(std::int64_t index) const;

 protected:
  std::vector<std::string> class_names_;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// Opens the IDX files of MNIST, Fashion-MNIST, EMNIST and their like in a folder: two files whose names end
/// in `train-images-idx3-ubyte` and `train-labels-idx1-ubyte` (for the test set `t10k-…` or `test-…`; with a
/// dot in place of the dash before `idx`, or `.gz` behind, or both). Grey images of one size, held in memory.
///
/// The classes' names are the lines of `classes.txt` in the folder, or else the numbers from 0 to the largest
/// label. Files that are missing, ambiguous, damaged, of another type, cut short or too long, or that don't
/// fit each other, throw Error("idx", …) with the file's path.
DatasetPtr open_idx(const std::string& folder, Subset subset);

/// Opens the binary version of CIFAR-10: `data_batch_1.bin` … `data_batch_5.bin`, or `test_batch.bin`, in the
/// folder or in `cifar-10-batches-bin` within it; names from `batches.meta.txt`, else the published ones.
/// Colour images of 32 x 32, held in memory. Throws Error("cifar10", …) with the file's path.
DatasetPtr open_cifar10(const std::string& folder, Subset subset);

/// CIFAR-100's 100 fine or 20 coarse classes.
enum class CifarLabels : std::uint8_t { fine, coarse };

/// Opens the binary version of CIFAR-100: `train.bin` or `test.bin`, in the folder or in `cifar-100-binary`
/// within it; names from `fine_label_names.txt` or `coarse_label_names.txt`, else numbers. As open_cifar10.
DatasetPtr open_cifar100(const std::string& folder, Subset subset, CifarLabels labels = CifarLabels::fine);

/// Opens a folder of classes, `FOLDER/CLASS/…/IMAGE`: each folder in it is a class, sorted by the bytes of
/// their names; images are the files in it, at any depth, whose names end in .jpg, .jpeg or .png in any case,
/// sorted by folder, then name. Names that begin with a dot are passed over. Images are read when asked for.
///
/// `classes`, if given, says which class is which label (the training set's, for a test set); a folder of
/// another name is an Error then, and a class may be missing. Without it, each class must have an image.
DatasetPtr open_folder(const std::string& folder, const std::vector<std::string>* classes = nullptr);

/// Opens `ROOT/train` as the training set, and the first of `ROOT/val`, `ROOT/validation` and `ROOT/test`
/// that exists as the test set, with the training set's classes.
DatasetPtr open_folder(const std::string& root, Subset subset);

}  // namespace purine::data
