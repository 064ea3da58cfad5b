#include "purine/data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "purine/core/error.h"

namespace purine::data {

void Taps::prepare(const ResampleAxis& axis, int source_extent) {
  valid_begin_ = std::clamp(-axis.first, 0, axis.count);
  valid_end_ = std::clamp(axis.resized - axis.first, valid_begin_, axis.count);
  const std::size_t outputs = static_cast<std::size_t>(valid_end_ - valid_begin_);
  const int lowest = std::max(0, static_cast<int>(std::floor(axis.begin)));
  const int highest = std::min(source_extent, static_cast<int>(std::ceil(axis.begin + axis.length)));
  PURINE_CHECK(lowest < highest && axis.resized > 0);

  const double scale = axis.length / axis.resized;
  const double reach = std::max(scale, 1.0);
  stride_ = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  begin_.resize(outputs);
  count_.resize(outputs);
  weights_.resize(outputs * stride_);
  exact_.resize(stride_);
  source_begin_ = source_extent;
  source_end_ = 0;
  for (std::size_t i = 0; i < outputs; ++i) {
    const double center = axis.begin + (axis.first + valid_begin_ + static_cast<int>(i) + 0.5) * scale;
    // Source pixels whose centres lie within reach of the output's; those at the very rim weigh nothing.
    int begin = std::max(lowest, static_cast<int>(std::floor(center - reach + 0.5)));
    int end = std::min(highest, static_cast<int>(std::floor(center + reach + 0.5)));
    const auto weight = [&](int x) { return 1.0 - std::abs(x + 0.5 - center) / reach; };
    while (begin + 1 < end && weight(begin) <= 0.0) ++begin;
    while (begin + 1 < end && weight(end - 1) <= 0.0) --end;
    double sum = 0;
    for (int x = begin; x < end; ++x) sum += exact_[static_cast<std::size_t>(x - begin)] = weight(x);
    float* weights = weights_.data() + i * stride_;
    for (int k = 0; k < end - begin; ++k) {
      weights[k] = static_cast<float>(exact_[static_cast<std::size_t>(k)] / sum);
    }
    begin_[i] = begin;
    count_[i] = end - begin;
    source_begin_ = std::min(source_begin_, begin);
    source_end_ = std::max(source_end_, end);
  }
  if (outputs == 0) source_begin_ = source_end_ = 0;
}

namespace {

// line[i] = sum over the taps of weight * pixel i of the tap's row, for `values` values from `offset` on.
void combine_rows(const Image& image, const Taps::Span& taps, std::size_t offset, std::size_t values,
                  float* line) {
  const std::uint8_t* first = image.row(taps.begin) + offset;
  const std::size_t step = image.row_bytes();
  if (taps.count == 1) {
    for (std::size_t i = 0; i < values; ++i) line[i] = static_cast<float>(first[i]);
    return;
  }
  const std::uint8_t* second = first + step;
  const float w0 = taps.weights[0];
  const float w1 = taps.weights[1];
  for (std::size_t i = 0; i < values; ++i) {
    line[i] = w0 * static_cast<float>(first[i]) + w1 * static_cast<float>(second[i]);
  }
  int k = 2;
  for (; k + 1 < taps.count; k += 2) {
    const std::uint8_t* one = first + static_cast<std::size_t>(k) * step;
    const std::uint8_t* two = one + step;
    const float w2 = taps.weights[k];
    const float w3 = taps.weights[k + 1];
    for (std::size_t i = 0; i < values; ++i) {
      line[i] += w2 * static_cast<float>(one[i]) + w3 * static_cast<float>(two[i]);
    }
  }
  if (k < taps.count) {
    const std::uint8_t* one = first + static_cast<std::size_t>(k) * step;
    const float w2 = taps.weights[k];
    for (std::size_t i = 0; i < values; ++i) line[i] += w2 * static_cast<float>(one[i]);
  }
}

// Four values in one register, the fourth of no meaning for pixels of three channels.
using Four = float __attribute__((vector_size(16)));

Four load_four(const float* from) {
  Four values;
  std::memcpy(&values, from, sizeof(values));
  return values;
}

// One weighted sum per channel of a line's pixels from `from` on; reads up to three values behind the last.
template <int channels>
Four sum_of(const float* from, const Taps::Span& taps) {
  Four sum = load_four(from) * taps.weights[0];
  for (int k = 1; k < taps.count; ++k) sum += load_four(from + k * channels) * taps.weights[k];
  return sum;
}

template <int channels>
void combine_columns(const float* line, const Taps& columns, bool flipped, int width,
                     const Normalisation& normalisation, float* output, const OutputStrides& strides) {
  const int source_begin = columns.source_begin();
  Four scale{};
  Four shift{};
  for (int c = 0; c < normalisation.channels; ++c) {
    scale[c] = normalisation.scale[c];
    shift[c] = normalisation.shift[c];
  }
  float* to = output + strides.column * (flipped ? width - 1 - columns.valid_begin() : columns.valid_begin());
  const std::ptrdiff_t step = flipped ? -strides.column : strides.column;
  for (int x = columns.valid_begin(); x < columns.valid_end(); ++x, to += step) {
    const Taps::Span taps = columns.of(x);
    Four sum =
        sum_of<channels>(line + static_cast<std::ptrdiff_t>(taps.begin - source_begin) * channels, taps);
    if (channels == 1) sum = Four{} + sum[0];
    const Four values = sum * scale + shift;
    to[0] = values[0];
    if (normalisation.channels == 3) {
      to[strides.channel] = values[1];
      to[2 * strides.channel] = values[2];
    }
  }
}

void fill_black(const Normalisation& normalisation, int begin, int end, bool flipped, int width,
                float* output, const OutputStrides& strides) {
  for (int x = begin; x < end; ++x) {
    float* to = output + strides.column * (flipped ? width - 1 - x : x);
    for (int c = 0; c < normalisation.channels; ++c) to[c * strides.channel] = normalisation.shift[c];
  }
}

}  // namespace

void resample(const Image& image, const ResampleAxis& rows, const ResampleAxis& columns, bool flipped,
              const Normalisation& normalisation, float* output, const OutputStrides& strides,
              ResampleWorkspace& workspace) {
  PURINE_CHECK(image.channels == 1 || image.channels == normalisation.channels);
  workspace.rows.prepare(rows, image.height);
  workspace.columns.prepare(columns, image.width);
  const Taps& row_taps = workspace.rows;
  const Taps& column_taps = workspace.columns;
  const std::size_t channels = static_cast<std::size_t>(image.channels);
  const std::size_t offset = channels * static_cast<std::size_t>(column_taps.source_begin());
  const std::size_t values =
      channels * static_cast<std::size_t>(column_taps.source_end() - column_taps.source_begin());
  workspace.line.resize(values + 3);  // sum_of reads four at a time
  for (int y = 0; y < rows.count; ++y) {
    float* to = output + strides.row * y;
    if (y < row_taps.valid_begin() || y >= row_taps.valid_end()) {
      fill_black(normalisation, 0, columns.count, flipped, columns.count, to, strides);
      continue;
    }
    combine_rows(image, row_taps.of(y), offset, values, workspace.line.data());
    if (channels == 1) {
      combine_columns<1>(workspace.line.data(), column_taps, flipped, columns.count, normalisation, to,
                         strides);
    } else {
      combine_columns<3>(workspace.line.data(), column_taps, flipped, columns.count, normalisation, to,
                         strides);
    }
    fill_black(normalisation, 0, column_taps.valid_begin(), flipped, columns.count, to, strides);
    fill_black(normalisation, column_taps.valid_end(), columns.count, flipped, columns.count, to, strides);
  }
}

}  // namespace purine::data
