// SPDX-License-Identifier: Apache-2.0
// Dimensioned quantities over a double in SI base units; a mismatch of dimensions does not compile.
#pragma once

#include <compare>
#include <cstdint>

namespace scapesim {

/// Exponents of the base dimensions.
struct Dim {
  int byte = 0;
  int second = 0;
  int flop = 0;
  int joule = 0;
  int dollar = 0;
  int token = 0;
  int kilogram = 0;
  constexpr bool operator==(const Dim&) const = default;
};

constexpr Dim operator+(Dim a, Dim b) {
  return {a.byte + b.byte,     a.second + b.second, a.flop + b.flop,        a.joule + b.joule,
          a.dollar + b.dollar, a.token + b.token,   a.kilogram + b.kilogram};
}
constexpr Dim operator-(Dim a, Dim b) {
  return {a.byte - b.byte,     a.second - b.second, a.flop - b.flop,        a.joule - b.joule,
          a.dollar - b.dollar, a.token - b.token,   a.kilogram - b.kilogram};
}

/// A value of dimension D. `+ - <=>` stay inside one dimension; `* /` add exponents.
template <Dim D>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double si) : si_(si) {}
  /// The value in SI base units (bytes, seconds, FLOPs, joules, ...).
  constexpr double si() const { return si_; }
  /// A pure number is a double.
  constexpr operator double() const requires(D == Dim{}) { return si_; }

  constexpr Quantity operator-() const { return Quantity(-si_); }
  constexpr Quantity& operator+=(Quantity other) { return si_ += other.si_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return si_ -= other.si_, *this; }
  constexpr Quantity& operator*=(double factor) { return si_ *= factor, *this; }
  constexpr Quantity& operator/=(double factor) { return si_ /= factor, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.si_ + b.si_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.si_ - b.si_); }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.si_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(f * a.si_); }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.si_ / f); }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  double si_ = 0;
};

template <Dim A, Dim B>
constexpr Quantity<A + B> operator*(Quantity<A> a, Quantity<B> b) {
  return Quantity<A + B>(a.si() * b.si());
}
template <Dim A, Dim B>
constexpr Quantity<A - B> operator/(Quantity<A> a, Quantity<B> b) {
  return Quantity<A - B>(a.si() / b.si());
}
template <Dim A>
constexpr Quantity<Dim{} - A> operator/(double a, Quantity<A> b) {
  return Quantity<Dim{} - A>(a / b.si());
}

using Bytes = Quantity<Dim{.byte = 1}>;
using Seconds = Quantity<Dim{.second = 1}>;
using Flops = Quantity<Dim{.flop = 1}>;
using Joules = Quantity<Dim{.joule = 1}>;
using Dollars = Quantity<Dim{.dollar = 1}>;
using Tokens = Quantity<Dim{.token = 1}>;
using Kilograms = Quantity<Dim{.kilogram = 1}>;
using BytesPerSecond = Quantity<Dim{.byte = 1, .second = -1}>;
using FlopsPerSecond = Quantity<Dim{.second = -1, .flop = 1}>;
using TokensPerSecond = Quantity<Dim{.second = -1, .token = 1}>;
using Watts = Quantity<Dim{.second = -1, .joule = 1}>;
using DollarsPerSecond = Quantity<Dim{.second = -1, .dollar = 1}>;
using KilogramsPerJoule = Quantity<Dim{.joule = -1, .kilogram = 1}>;

namespace literals {
// Small units divide by a whole number: 5_us is the double nearest to 5e-6, 5 * 1e-6 is not.
#define SCAPESIM_LITERAL(suffix, Type, times)                                                      \
  constexpr Type operator""_##suffix(long double v) { return Type(static_cast<double>(v) times); } \
  constexpr Type operator""_##suffix(unsigned long long v) {                                       \
    return Type(static_cast<double>(v) times);                                                     \
  }
SCAPESIM_LITERAL(B, Bytes, *1.0)
SCAPESIM_LITERAL(KB, Bytes, *1e3)
SCAPESIM_LITERAL(MB, Bytes, *1e6)
SCAPESIM_LITERAL(GB, Bytes, *1e9)
SCAPESIM_LITERAL(KiB, Bytes, *1024.0)
SCAPESIM_LITERAL(MiB, Bytes, *1048576.0)
SCAPESIM_LITERAL(GiB, Bytes, *1073741824.0)
SCAPESIM_LITERAL(s, Seconds, *1.0)
SCAPESIM_LITERAL(ms, Seconds, / 1e3)
SCAPESIM_LITERAL(us, Seconds, / 1e6)
SCAPESIM_LITERAL(ns, Seconds, / 1e9)
SCAPESIM_LITERAL(GBps, BytesPerSecond, *1e9)
SCAPESIM_LITERAL(TBps, BytesPerSecond, *1e12)
SCAPESIM_LITERAL(Gbps, BytesPerSecond, *1e9 / 8)  // bits on the wire: the only division by 8
SCAPESIM_LITERAL(TFLOP, Flops, *1e12)
SCAPESIM_LITERAL(TFLOPps, FlopsPerSecond, *1e12)
#undef SCAPESIM_LITERAL
}  // namespace literals

static_assert(sizeof(Bytes) == sizeof(double));

}  // namespace scapesim
