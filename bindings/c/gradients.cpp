// Gradients: the check for NaN and Inf, compression, batches that stay the same.
#include <cstddef>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

elastic_code elastic_finite_check_create(elastic_context* context, const char* const* names,
                                         const elastic_tensor* gradients, size_t count,
                                         elastic_finite_check** check) {
  constexpr const char* kCall = "elastic_finite_check_create";
  return guarded([&] {
    require(check, kCall, "check");
    require_named(names, gradients, count, kCall);
    std::vector<elastic::NamedGradient> named;
    for (size_t i = 0; i < count; ++i) {
      named.push_back({names[i], tensor_of(gradients + i, kCall, "gradient")});
    }
    *check = new elastic_finite_check{
        elastic::FiniteCheck(context_of(context, kCall), std::move(named))};
  });
}
void elastic_finite_check_destroy(elastic_finite_check* check) {
  delete check;
}
elastic_code elastic_finite_check_begin_step(elastic_finite_check* check) {
  return guarded([&] {
    require(check, "elastic_finite_check_begin_step", "check");
    check->value.begin_step();
  });
}
elastic_code elastic_finite_check_before_sum(elastic_finite_check* check) {
  return guarded([&] {
    require(check, "elastic_finite_check_before_sum", "check");
    check->value.before_sum();
  });
}
elastic_code elastic_finite_check_after_sum(elastic_finite_check* check, int* usable) {
  return guarded([&] {
    require(check, "elastic_finite_check_after_sum", "check");
    require(usable, "elastic_finite_check_after_sum", "usable");
    *usable = check->value.after_sum() ? 1 : 0;
  });
}

elastic_code elastic_cast_allreduce(elastic_context* context, const elastic_cast_tensor* tensors,
                                    size_t count, elastic_op op, void* stream,
                                    elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_cast_allreduce";
  return guarded([&] {
    if (count > 0) require(tensors, kCall, "tensors");
    std::vector<elastic::CastTensor> cast;
    for (size_t i = 0; i < count; ++i) {
      cast.push_back(
          {tensor_of(&tensors[i].tensor, kCall, "tensor"),
           checked<elastic::DType>(tensors[i].wire_dtype, ELASTIC_BOOL, kCall, "wire type"),
           tensors[i].scale});
    }
    fill(contributors, collectives_of(context).cast_allreduce(cast, op_of(op, kCall), {stream}));
  });
}

elastic_code elastic_compressor_create(elastic_context* context, const char* compression,
                                       elastic_compressor** compressor) {
  constexpr const char* kCall = "elastic_compressor_create";
  return guarded([&] {
    require(compressor, kCall, "compressor");
    elastic::Context& its = context_of(context, kCall);
    elastic::Compression chosen = its.compression();
    if (compression != nullptr) {
      const auto found = elastic::find_compression(compression);
      if (!found) {
        throw elastic::Error(elastic::ErrorCode::kInvalidArgument,
                             std::string(kCall) + ": the compression is '" + compression +
                                 "'; it is " + std::string(elastic::kCompressionForms));
      }
      chosen = *found;
    }
    *compressor = new elastic_compressor{elastic::GradientCompressor(its, chosen)};
  });
}
void elastic_compressor_destroy(elastic_compressor* compressor) {
  delete compressor;
}
elastic_code elastic_compressor_allreduce(elastic_compressor* compressor, const char* const* names,
                                          const elastic_tensor* tensors, const unsigned char* whole,
                                          size_t count, elastic_op op, void* stream,
                                          elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_compressor_allreduce";
  return guarded([&] {
    require(compressor, kCall, "compressor");
    require_named(names, tensors, count, kCall);
    std::vector<elastic::NamedTensor> named;
    for (size_t i = 0; i < count; ++i) {
      named.push_back(
          {names[i], tensor_of(tensors + i, kCall, "tensor"), whole != nullptr && whole[i] != 0});
    }
    fill(contributors, compressor->value.grouped_allreduce(named, op_of(op, kCall), {stream}));
  });
}
elastic_code elastic_compressor_send_whole(elastic_compressor* compressor, int whole) {
  return guarded([&] {
    require(compressor, "elastic_compressor_send_whole", "compressor");
    compressor->value.send_whole(whole != 0);
  });
}
elastic_code elastic_compressor_rescale(elastic_compressor* compressor, double rate_before,
                                        double batch_before, double rate, double batch) {
  return guarded([&] {
    require(compressor, "elastic_compressor_rescale", "compressor");
    compressor->value.rescale({rate_before, batch_before}, {rate, batch});
  });
}
elastic_code elastic_compressor_reset(elastic_compressor* compressor) {
  return guarded([&] {
    require(compressor, "elastic_compressor_reset", "compressor");
    compressor->value.reset();
  });
}
elastic_code elastic_compressor_begin_at(elastic_compressor* compressor, uint64_t step) {
  return guarded([&] {
    require(compressor, "elastic_compressor_begin_at", "compressor");
    compressor->value.begin_at(step);
  });
}
elastic_code elastic_compressor_residual(const elastic_compressor* compressor, const char* name,
                                         const float** values, size_t* count) {
  constexpr const char* kCall = "elastic_compressor_residual";
  return guarded([&] {
    require(compressor, kCall, "compressor");
    require(name, kCall, "name");
    const auto residual = compressor->value.residual(name);
    fill(values, residual.data());
    fill(count, residual.size());
  });
}
elastic_code elastic_compressor_get_traffic(const elastic_compressor* compressor, int of_all_calls,
                                            elastic_traffic* traffic) {
  constexpr const char* kCall = "elastic_compressor_get_traffic";
  return guarded([&] {
    require(compressor, kCall, "compressor");
    const auto& its = of_all_calls != 0 ? compressor->value.total() : compressor->value.latest();
    fill_struct<elastic_traffic>(traffic,
                                 {sizeof(elastic_traffic), its.tensors, its.encoded, its.sent,
                                  its.sent_uncompressed, its.non_finite, its.residual_norm},
                                 kCall);
  });
}

elastic_code elastic_global_batch_create(elastic_context* context, elastic_sampler* sampler,
                                         const char* policy, size_t batch, size_t virtual_workers,
                                         elastic_global_batch** batches) {
  constexpr const char* kCall = "elastic_global_batch_create";
  return guarded([&] {
    require(sampler, kCall, "sampler");
    require(policy, kCall, "policy");
    require(batches, kCall, "batches");
    const elastic::GlobalBatch::Options options{
        .policy = choice_of(elastic::kBatchPolicies, policy, kCall, "policy"),
        .batch = batch,
        .virtual_workers = virtual_workers};
    *batches = new elastic_global_batch{
        elastic::GlobalBatch(context_of(context, kCall), sampler->value, options)};
  });
}
void elastic_global_batch_destroy(elastic_global_batch* batches) {
  delete batches;
}
elastic_code elastic_global_batch_sum(elastic_global_batch* batches, const elastic_tensor* tensors,
                                      size_t count, elastic_add_gradients add_gradients, void* user,
                                      elastic_batch_sum* sum, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_global_batch_sum";
  return guarded([&] {
    require(batches, kCall, "batches");
    require(reinterpret_cast<const void*>(add_gradients), kCall, "add_gradients");
    if (sum != nullptr) fill_struct<elastic_batch_sum>(sum, {sizeof *sum, 0, 0}, kCall);
    const auto views = tensors_of(tensors, count, kCall);
    const auto result = batches->value.sum(views, [&](elastic::VirtualBatch& part) {
      elastic_random random{&part.random};
      const elastic_batch_part given{sizeof(elastic_batch_part), part.virtual_worker,
                                     part.samples.data(), part.samples.size(), &random};
      call_back("add_gradients", [&] { return add_gradients(user, &given); });
    });
    if (sum != nullptr) {
      fill_struct<elastic_batch_sum>(sum, {sizeof *sum, result.samples, result.full_batch}, kCall);
    }
    fill(contributors, result.contributors);
  });
}
elastic_code elastic_state_add_global_batch(elastic_state* state, const char* name,
                                            elastic_global_batch* batches) {
  constexpr const char* kCall = "elastic_state_add_global_batch";
  return guarded([&] {
    require(state, kCall, "state");
    require(name, kCall, "name");
    require(batches, kCall, "batches");
    state->value.add(name, batches->value);
  });
}

elastic_code elastic_random_bits(elastic_random* random, uint32_t* bits) {
  return guarded([&] {
    require(random, "elastic_random_bits", "random");
    require(bits, "elastic_random_bits", "bits");
    *bits = (*random->value)();
  });
}
elastic_code elastic_random_uniform(elastic_random* random, double* number) {
  return guarded([&] {
    require(random, "elastic_random_uniform", "random");
    require(number, "elastic_random_uniform", "number");
    *number = random->value->uniform();
  });
}
elastic_code elastic_random_below(elastic_random* random, uint64_t bound, uint64_t* number) {
  return guarded([&] {
    require(random, "elastic_random_below", "random");
    require(number, "elastic_random_below", "number");
    *number = random->value->below(bound);
  });
}

elastic_code elastic_average_by_samples(elastic_context* context, const elastic_tensor* sums,
                                        size_t count, uint64_t samples, uint64_t* total,
                                        elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_average_by_samples";
  return guarded([&] {
    const auto views = tensors_of(sums, count, kCall);
    const auto average = elastic::average_by_samples(context_of(context, kCall), views, samples);
    fill(total, average.samples);
    fill(contributors, average.contributors);
  });
}
