#include "purine/ops/matmul.h"

#include <algorithm>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/onednn.h"

namespace purine::cpu {
namespace {

using dnnl::memory;
using onednn::Sequence;

/// The least operations of a part: some forty microseconds.
constexpr double operations_per_part = 4e6;

/// Products of matrices with any distances between their elements; a distance of 0 repeats a matrix.
struct Product {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  bool sum_batch = false;
  bool has_bias = false;
  bool transpose_a = false;
  bool transpose_b = false;
  bool single_a = true;  ///< one matrix for the whole batch
  bool single_b = true;

  std::int64_t a_batch() const { return single_a ? 0 : rows * inner; }
  std::int64_t a_row() const { return transpose_a ? 1 : inner; }
  std::int64_t a_inner() const { return transpose_a ? rows : 1; }
  std::int64_t b_batch() const { return single_b ? 0 : inner * columns; }
  std::int64_t b_inner() const { return transpose_b ? 1 : columns; }
  std::int64_t b_column() const { return transpose_b ? inner : 1; }
  std::int64_t y_batch() const { return sum_batch ? 0 : rows * columns; }

  double operations() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(inner) *
           static_cast<double>(columns);
  }
};

std::int64_t batch_elements(const Shape& shape) {
  std::int64_t elements = 1;
  for (int dimension = 0; dimension < shape.rank() - 2; ++dimension) elements *= shape[dimension];
  return elements;
}

Product product_of(const ops::MatmulOptions& options, const Shape& a, const Shape& b) {
  Product product;
  product.batch = batch_elements(a.rank() > 2 ? a : b);
  product.rows = a[a.rank() - (options.transpose_a ? 1 : 2)];
  product.inner = a[a.rank() - (options.transpose_a ? 2 : 1)];
  product.columns = b[b.rank() - (options.transpose_b ? 2 : 1)];
  product.sum_batch = options.sum_batch;
  product.transpose_a = options.transpose_a;
  product.transpose_b = options.transpose_b;
  product.single_a = a.rank() == 2;
  product.single_b = b.rank() == 2;
  if (product.single_b && !product.single_a && !options.transpose_a && !options.sum_batch) {
    // The rows of all matrices lie one after the other: they are the rows of one matrix.
    product.rows *= product.batch;
    product.batch = 1;
    product.single_a = true;
  }
  return product;
}

/// x and weight of a linear layer: the rows of x times the transposed weight.
Product product_of(const Shape& x, const Shape& weight, bool has_bias) {
  Product product;
  product.inner = weight[1];
  product.rows = 1;
  for (int dimension = 0; dimension < x.rank() - 1; ++dimension) product.rows *= x[dimension];
  product.columns = weight[0];
  product.transpose_b = true;
  product.has_bias = has_bias;
  return product;
}

template <typename T>
std::unique_ptr<Kernel> loops(const Product& product) {
  return make_kernel([product](const KernelCall& call) {
    const T* bias = product.has_bias ? call.input<T>(2) : nullptr;
    T* y = call.output<T>(0);
    const std::int64_t results = product.sum_batch ? 1 : product.batch;
    for (std::int64_t at = 0; at < results * product.rows * product.columns; ++at) {
      y[at] = product.has_bias ? bias[at % product.columns] : T{0};
    }
    for (std::int64_t n = 0; n < product.batch; ++n) {
      const T* a = call.input<T>(0) + n * product.a_batch();
      const T* b = call.input<T>(1) + n * product.b_batch();
      T* sums = y + n * product.y_batch();
      for (std::int64_t i = 0; i < product.rows; ++i) {
        for (std::int64_t k = 0; k < product.inner; ++k) {
          const T factor = a[i * product.a_row() + k * product.a_inner()];
          const T* row = b + k * product.b_inner();
          for (std::int64_t j = 0; j < product.columns; ++j) {
            sums[i * product.columns + j] += factor * row[j * product.b_column()];
          }
        }
      }
    }
  });
}

/// The part of the products' elements that one sequence computes.
struct Block {
  std::int64_t first_batch = 0;
  std::int64_t batch = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 0;
};

std::int64_t bytes(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

/// One product with an inner dimension that runs over the batch. A factor whose matrices lie so that batch
/// and inner dimension are one with an even distance is used as it is, another one is copied into that order.
Sequence summed_sequence(const Product& product, const Block& block) {
  const std::int64_t inner = product.batch * product.inner;
  Sequence sequence;
  // Lays the elements [batch, outer, inner] as [outer, batch * inner].
  const auto gathered = [&](int index, std::int64_t outer, std::int64_t first, std::int64_t count) {
    const memory::dims extents{product.batch, count, product.inner};
    const auto from =
        sequence.input(index, onednn::describe(extents, {outer * product.inner, product.inner, 1}),
                       bytes(first * product.inner));
    const auto to = sequence.intermediate(onednn::describe(extents, {product.inner, inner, 1}));
    sequence.copy(from, to);
    return to;
  };
  memory::desc a_desc;
  memory::desc b_desc;
  Sequence::Argument a;
  Sequence::Argument b;
  if (product.transpose_a) {
    a_desc = onednn::describe({block.rows, inner}, {1, product.rows});
    a = sequence.input(0, a_desc, bytes(block.first_row));
  } else {
    a_desc = onednn::describe({block.rows, inner}, {inner, 1});
    a = sequence.view(gathered(0, product.rows, block.first_row, block.rows), a_desc);
  }
  if (product.transpose_b) {
    b_desc = onednn::describe({inner, block.columns}, {1, inner});
    b = sequence.view(gathered(1, product.columns, block.first_column, block.columns), b_desc);
  } else {
    b_desc = onednn::describe({inner, block.columns}, {product.columns, 1});
    b = sequence.input(1, b_desc, bytes(block.first_column));
  }
  const memory::desc y_desc = onednn::describe({block.rows, block.columns}, {product.columns, 1});
  const auto y = sequence.output(0, y_desc, bytes(block.first_row * product.columns + block.first_column));
  const auto desc = sequence.describe_primitive<dnnl::matmul>(a_desc, b_desc, y_desc);
  sequence.add<dnnl::matmul>(desc, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}});
  return sequence;
}

/// The formats in which a block's matrices meet. oneDNN's fast kernels want matrices without gaps, which a
/// part of a side does not leave to all of them: of a transposed left factor, and of the result, it has a
/// strip of every row. Those are worth a copy where enough operations follow for each element.
struct Formats {
  memory::desc a;
  memory::desc b;
  memory::desc y;
};

Formats packed(const Product& product, const Block& block, const Formats& formats) {
  constexpr std::int64_t least = 256;  // multiply-adds an element: a copy is then below a tenth of the time
  constexpr std::int64_t most_rows = 512;  // with more, strips are as fast
  const bool strip_of_a = product.transpose_a && block.rows < product.rows;
  const bool strip_of_b = !product.transpose_b && block.columns < product.columns;
  const bool strip_of_y = block.columns < product.columns;
  if (strip_of_b || (strip_of_a && block.columns < least) ||
      (strip_of_y && (product.inner < least || block.rows >= most_rows))) {
    return formats;
  }
  Formats dense = formats;
  if (strip_of_a) dense.a = onednn::describe({block.rows, product.inner}, {1, block.rows});
  if (strip_of_y) dense.y = onednn::describe({block.rows, block.columns}, {block.columns, 1});
  return dense;
}

Sequence matmul_sequence(const Product& product, const Block& block) {
  if (product.sum_batch && product.batch > 1) return summed_sequence(product, block);
  const bool batched = block.batch > 1;
  // Matrices, with a dimension for the batch before them where there is one.
  const auto describe = [&](std::int64_t batch, std::int64_t rows, std::int64_t columns,
                            std::int64_t batch_stride, std::int64_t row_stride, std::int64_t column_stride) {
    if (!batched) return onednn::describe({rows, columns}, {row_stride, column_stride});
    return onednn::describe({batch, rows, columns},
                            {batch == 1 ? rows * columns : batch_stride, row_stride, column_stride});
  };
  const Formats given{
      describe(product.single_a ? 1 : block.batch, block.rows, product.inner, product.a_batch(),
               product.a_row(), product.a_inner()),
      describe(product.single_b ? 1 : block.batch, product.inner, block.columns, product.b_batch(),
               product.b_inner(), product.b_column()),
      describe(block.batch, block.rows, block.columns, product.y_batch(), product.columns, 1)};
  const Formats used = batched ? given : packed(product, block, given);
  const std::int64_t y_offset =
      block.first_batch * product.y_batch() + block.first_row * product.columns + block.first_column;
  Sequence sequence;
  const auto a = sequence.converted(
      sequence.input(0, given.a,
                     bytes(block.first_batch * product.a_batch() + block.first_row * product.a_row())),
      used.a);
  const auto b = sequence.input(
      1, given.b, bytes(block.first_batch * product.b_batch() + block.first_column * product.b_column()));
  const auto y = sequence.output(0, given.y, bytes(y_offset));
  const auto made = used.y == given.y ? y : sequence.intermediate(used.y);
  if (product.has_bias) {
    const memory::desc bias_desc = onednn::describe({1, block.columns}, {block.columns, 1});
    const auto bias = sequence.input(2, bias_desc, bytes(block.first_column));
    sequence.add<dnnl::matmul>(
        sequence.describe_primitive<dnnl::matmul>(used.a, used.b, bias_desc, used.y),
        {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, made}});
  } else {
    sequence.add<dnnl::matmul>(sequence.describe_primitive<dnnl::matmul>(used.a, used.b, used.y),
                               {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, made}});
  }
  if (made != y) sequence.copy(made, y);
  return sequence;
}

/// Divides the batch where there is one, else the longer side of the result, in multiples of 64 elements.
std::vector<Block> blocks_of(const Product& product) {
  const bool by_batch = product.batch > 1 && !product.sum_batch;
  const bool by_columns = product.rows < 512 || (product.columns >= product.rows && product.inner >= 256);
  constexpr std::int64_t granule = 64;
  const std::int64_t side = by_columns ? product.columns : product.rows;
  const std::int64_t units = by_batch ? product.batch : (side + granule - 1) / granule;
  const int parts = batch_parts(units, product.operations(), operations_per_part);
  std::vector<Block> blocks;
  for (int part = 0; part < parts; ++part) {
    const auto [begin, end] = batch_range(units, part, parts);
    Block block{0, product.batch, 0, product.rows, 0, product.columns};
    if (by_batch) {
      block.first_batch = begin;
      block.batch = end - begin;
    } else {
      (by_columns ? block.first_column : block.first_row) = begin * granule;
      (by_columns ? block.columns : block.rows) = std::min(end * granule, side) - begin * granule;
    }
    blocks.push_back(block);
  }
  return blocks;
}

std::unique_ptr<Kernel> bind_product(const Product& product, DType dtype) {
  if (dtype == DType::f64) return loops<double>(product);
  const bool empty = product.batch == 0 || product.rows == 0 || product.inner == 0 || product.columns == 0;
  if (empty) return loops<float>(product);
  const onednn::SingleThread single_thread;
  std::vector<Sequence> sequences;
  for (const Block& block : blocks_of(product)) sequences.push_back(matmul_sequence(product, block));
  return std::make_unique<onednn::SequenceKernel>(std::move(sequences));
}

}  // namespace

void register_matmul(KernelRegistry& registry) {
  registry.add("matmul", [](const BindContext& context) {
    return bind_product(
        product_of(context.as<ops::Matmul>().options(), context.input(0).shape, context.input(1).shape),
        context.input(0).dtype);
  });
  registry.add("linear", [](const BindContext& context) {
    const bool has_bias = context.inputs.size() == 3 && context.as<ops::Linear>().adds_bias();
    return bind_product(product_of(context.input(0).shape, context.input(1).shape, has_bias),
                        context.input(0).dtype);
  });
}

}  // namespace purine::cpu
