#pragma once
// Builtins as functions that count the issue slots of their instructions, for compilations that
// count cycles. Each takes one instruction per 64 bits of its result, except transcendental ones.
namespace ipujax_counted {

template <unsigned kHalf2, unsigned kFloat>
struct Slots {
  template <class V>
  static constexpr unsigned of = ipujax_lanes::slots<V, kHalf2, kFloat>;
};
struct Simple {
  template <class V>
  static constexpr unsigned of = ipujax_lanes::simple<V>;
};

template <class Cost, class F, class... Args>
auto counted(F f, Args... args) {
  if constexpr (std::is_void_v<decltype(f(args...))>) {
    ipujax_cycles::issue(1);
    f(args...);
  } else {
    auto made = f(args...);
    ipujax_cycles::issue(Cost::template of<decltype(made)>);
    return made;
  }
}

#define IPUJAX_COUNTED(name, ...)                                                              \
  struct name##_ {                                                                             \
    template <class... Args>                                                                   \
    auto operator()(Args... args) const {                                                      \
      return counted<__VA_ARGS__>([](auto... a) { return ipujax_ipu_##name(a...); }, args...); \
    }                                                                                          \
  };
#define IPUJAX_SIMPLE(name) IPUJAX_COUNTED(name, Simple)
IPUJAX_SIMPLE(aacc_zero) IPUJAX_SIMPLE(absadd) IPUJAX_SIMPLE(absmax) IPUJAX_SIMPLE(and)
IPUJAX_SIMPLE(and_f32) IPUJAX_SIMPLE(and_i32) IPUJAX_SIMPLE(and_v2f32) IPUJAX_SIMPLE(andc)
IPUJAX_SIMPLE(andc_f32) IPUJAX_SIMPLE(andc_i32) IPUJAX_SIMPLE(andc_v2f32) IPUJAX_SIMPLE(bitrev8)
IPUJAX_SIMPLE(clamp) IPUJAX_SIMPLE(class) IPUJAX_SIMPLE(cmac) IPUJAX_SIMPLE(cmpeq)
IPUJAX_SIMPLE(cmpge) IPUJAX_SIMPLE(cmpgt) IPUJAX_SIMPLE(cmple) IPUJAX_SIMPLE(cmplt)
IPUJAX_SIMPLE(cmpne) IPUJAX_SIMPLE(cms) IPUJAX_SIMPLE(f16tof32) IPUJAX_SIMPLE(f16v2absadd)
IPUJAX_SIMPLE(f16v2absmax) IPUJAX_SIMPLE(f16v2clamp) IPUJAX_SIMPLE(f16v2class)
IPUJAX_SIMPLE(f16v2cmac) IPUJAX_SIMPLE(f16v2cmpeq) IPUJAX_SIMPLE(f16v2cmpge)
IPUJAX_SIMPLE(f16v2cmpgt) IPUJAX_SIMPLE(f16v2cmple) IPUJAX_SIMPLE(f16v2cmplt)
IPUJAX_SIMPLE(f16v2cmpne) IPUJAX_SIMPLE(f16v2gina) IPUJAX_SIMPLE(f16v2grand)
IPUJAX_SIMPLE(f16v2max) IPUJAX_SIMPLE(f16v2maxc) IPUJAX_SIMPLE(f16v2min) IPUJAX_SIMPLE(f16v2sum)
IPUJAX_SIMPLE(f16v4absadd) IPUJAX_SIMPLE(f16v4absmax) IPUJAX_SIMPLE(f16v4clamp)
IPUJAX_SIMPLE(f16v4class) IPUJAX_SIMPLE(f16v4cmac) IPUJAX_SIMPLE(f16v4cmpeq)
IPUJAX_SIMPLE(f16v4cmpge) IPUJAX_SIMPLE(f16v4cmpgt) IPUJAX_SIMPLE(f16v4cmple)
IPUJAX_SIMPLE(f16v4cmplt) IPUJAX_SIMPLE(f16v4cmpne) IPUJAX_SIMPLE(f16v4max)
IPUJAX_SIMPLE(f16v4maxc) IPUJAX_SIMPLE(f16v4min) IPUJAX_SIMPLE(f16v4rmask)
IPUJAX_SIMPLE(f16v4sum) IPUJAX_SIMPLE(f32absadd) IPUJAX_SIMPLE(f32absmax) IPUJAX_SIMPLE(f32clamp)
IPUJAX_SIMPLE(f32class) IPUJAX_SIMPLE(f32cmpeq) IPUJAX_SIMPLE(f32cmpge) IPUJAX_SIMPLE(f32cmpgt)
IPUJAX_SIMPLE(f32cmple) IPUJAX_SIMPLE(f32cmplt) IPUJAX_SIMPLE(f32cmpne) IPUJAX_SIMPLE(f32max)
IPUJAX_SIMPLE(f32min) IPUJAX_SIMPLE(f32tof16) IPUJAX_SIMPLE(f32v2absadd)
IPUJAX_SIMPLE(f32v2absmax) IPUJAX_SIMPLE(f32v2aop) IPUJAX_SIMPLE(f32v2axpy)
IPUJAX_SIMPLE(f32v2clamp) IPUJAX_SIMPLE(f32v2class) IPUJAX_SIMPLE(f32v2cmac)
IPUJAX_SIMPLE(f32v2cmpeq) IPUJAX_SIMPLE(f32v2cmpge) IPUJAX_SIMPLE(f32v2cmpgt)
IPUJAX_SIMPLE(f32v2cmple) IPUJAX_SIMPLE(f32v2cmplt) IPUJAX_SIMPLE(f32v2cmpne)
IPUJAX_SIMPLE(f32v2gina) IPUJAX_SIMPLE(f32v2grand) IPUJAX_SIMPLE(f32v2max)
IPUJAX_SIMPLE(f32v2min) IPUJAX_SIMPLE(f32v2rmask) IPUJAX_SIMPLE(get) IPUJAX_SIMPLE(get_tile_id)
IPUJAX_SIMPLE(get_vertex_base) IPUJAX_SIMPLE(get_worker_id) IPUJAX_SIMPLE(gina)
IPUJAX_SIMPLE(is_worker_mode) IPUJAX_SIMPLE(isfinite) IPUJAX_SIMPLE(isinf) IPUJAX_SIMPLE(isnan)
IPUJAX_SIMPLE(isfinite_f32) IPUJAX_SIMPLE(isfinite_v2f16)
IPUJAX_SIMPLE(isfinite_v2f32) IPUJAX_SIMPLE(isfinite_v4f16)
IPUJAX_SIMPLE(isinf_f32) IPUJAX_SIMPLE(isinf_v2f16)
IPUJAX_SIMPLE(isinf_v2f32) IPUJAX_SIMPLE(isinf_v4f16)
IPUJAX_SIMPLE(isnan_f32) IPUJAX_SIMPLE(isnan_v2f16)
IPUJAX_SIMPLE(isnan_v2f32) IPUJAX_SIMPLE(isnan_v4f16)
IPUJAX_SIMPLE(max) IPUJAX_SIMPLE(maxc) IPUJAX_SIMPLE(min) IPUJAX_SIMPLE(not)
IPUJAX_SIMPLE(not_f32) IPUJAX_SIMPLE(not_v2f32) IPUJAX_SIMPLE(or) IPUJAX_SIMPLE(or_f32)
IPUJAX_SIMPLE(or_i32) IPUJAX_SIMPLE(or_v2f32) IPUJAX_SIMPLE(put) IPUJAX_SIMPLE(put_tas)
IPUJAX_SIMPLE(rmask) IPUJAX_SIMPLE(roll16) IPUJAX_SIMPLE(roll32) IPUJAX_SIMPLE(roll8l)
IPUJAX_SIMPLE(roll8r) IPUJAX_SIMPLE(shuf8x8hi) IPUJAX_SIMPLE(shuf8x8lo) IPUJAX_SIMPLE(sort4x16hi)
IPUJAX_SIMPLE(sort4x16lo) IPUJAX_SIMPLE(sort4x32hi) IPUJAX_SIMPLE(sort4x32lo)
IPUJAX_SIMPLE(sort8) IPUJAX_SIMPLE(sort8x8hi) IPUJAX_SIMPLE(sort8x8lo) IPUJAX_SIMPLE(sum)
IPUJAX_SIMPLE(swap8) IPUJAX_SIMPLE(uget) IPUJAX_SIMPLE(ugetf) IPUJAX_SIMPLE(uput)
IPUJAX_SIMPLE(uputf) IPUJAX_SIMPLE(urand32) IPUJAX_SIMPLE(urand64) IPUJAX_SIMPLE(urand_f16)
IPUJAX_SIMPLE(urand_f32) IPUJAX_SIMPLE(xor) IPUJAX_SIMPLE(xor_f32) IPUJAX_SIMPLE(xor_i32)
IPUJAX_SIMPLE(xor_v2f32)

// Reading the counter takes no slot, so that two consecutive readings are equal.
IPUJAX_COUNTED(get_scount_l, Slots<0, 0>)
IPUJAX_COUNTED(get_scount_u, Slots<0, 0>)

// Transcendental functions: slots for half2 and for float, see lanes.h. atan is not an instruction.
IPUJAX_COUNTED(exp, Slots<2, 3>)
IPUJAX_COUNTED(exp2, Slots<2, 3>)
IPUJAX_COUNTED(f16v2exp, Slots<2, 3>)
IPUJAX_COUNTED(f16v2exp2, Slots<2, 3>)
IPUJAX_COUNTED(f16v2ln, Slots<2, 6>)
IPUJAX_COUNTED(f16v2log2, Slots<2, 6>)
IPUJAX_COUNTED(f16v2oorx, Slots<2, 3>)
IPUJAX_COUNTED(f16v2rsqrt, Slots<2, 3>)
IPUJAX_COUNTED(f16v2sigm, Slots<2, 5>)
IPUJAX_COUNTED(f16v2sqrt, Slots<2, 5>)
IPUJAX_COUNTED(f16v2tanh, Slots<1, 5>)
IPUJAX_COUNTED(f32atan, Slots<20, 20>)
IPUJAX_COUNTED(f32exp, Slots<2, 3>)
IPUJAX_COUNTED(f32exp2, Slots<2, 3>)
IPUJAX_COUNTED(f32ln, Slots<2, 6>)
IPUJAX_COUNTED(f32log2, Slots<2, 6>)
IPUJAX_COUNTED(f32oorx, Slots<2, 3>)
IPUJAX_COUNTED(f32rsqrt, Slots<2, 3>)
IPUJAX_COUNTED(f32sigm, Slots<2, 5>)
IPUJAX_COUNTED(f32sqrt, Slots<2, 5>)
IPUJAX_COUNTED(f32tanh, Slots<1, 5>)
IPUJAX_COUNTED(ln, Slots<2, 6>)
IPUJAX_COUNTED(log2, Slots<2, 6>)
IPUJAX_COUNTED(oorx, Slots<2, 3>)
IPUJAX_COUNTED(rsqrt, Slots<2, 3>)
IPUJAX_COUNTED(sigm, Slots<2, 5>)
IPUJAX_COUNTED(sqrt, Slots<2, 5>)
IPUJAX_COUNTED(tanh, Slots<1, 5>)
#undef IPUJAX_COUNTED
#undef IPUJAX_SIMPLE

}  // namespace ipujax_counted
