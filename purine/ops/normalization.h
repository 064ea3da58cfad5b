// All normalisations.
#pragma once

#include "purine/ops/batch_normalization.h"
#include "purine/ops/local_response_normalization.h"
#include "purine/ops/moving_average.h"
#include "purine/ops/unbiased_variance.h"
