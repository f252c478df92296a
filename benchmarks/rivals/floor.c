/* The least arithmetic of one pass over right and wrong answers, one ability: what `benchmarks.rivals.floors` times.
 *
 * Each cell has a normal logit of mean m = a theta + c and a variance from both posteriors. Its expected log-likelihood
 * is taken at three nodes, as in `itembank.calibration.variational.cells`, and summed into what the update of the item
 * needs. Answers are bytes: 0, 1, and 255 where there is none.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { N_SUMS = 6 };

/* abilities (2, n_models): means, variances; items (n_items, 5): a, c, and var a, cov(a, c), var c;
 * sums (n_items, 6): w, w theta, w E[theta^2], linear, linear theta, log-likelihood. */
void item_pass(const uint8_t *answers, ptrdiff_t n_items, ptrdiff_t n_models, const float *abilities, const float *items,
               float *sums) {
    const float *theta = abilities, *uncertainty = abilities + n_models;
    for (ptrdiff_t i = 0; i < n_items; i++) {
        const float a = items[5 * i], c = items[5 * i + 1];
        const float of_slope = items[5 * i + 2], of_both = items[5 * i + 3], of_intercept = items[5 * i + 4];
        const uint8_t *row = answers + i * n_models;
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4, s5)
        for (ptrdiff_t l = 0; l < n_models; l++) {
            const float t = theta[l], v = uncertainty[l];
            const float mean = a * t + c;
            const float variance = (of_slope * t + 2 * of_both) * t + of_intercept + (a * a + of_slope) * v;
            const float half_step = sqrtf(0.75f * fmaxf(variance, 1e-6f)), size = 0.5f * fabsf(mean);
            const float centre = expf(-2 * size), inner = expf(-2 * half_step);
            const float above = centre * inner, below = centre / inner;
            const float outer = (1 + above) * (1 + below);
            const float curvature = 0.25f * (below - above) / (outer * half_step);
            const float tangent = ((1 - centre * centre) / outer + 2 * (1 - centre) / (1 + centre)) / 6;
            const float square = (1 + centre) * (1 + centre);
            const float log_cosh = logf(square * square * outer) / 6 + size;
            const float known = row[l] == 255 ? 0.0f : 1.0f, centred = (float)row[l] - 0.5f;
            const float w = known * curvature;
            const float linear = known * (centred + curvature * mean - copysignf(tangent, mean));
            s0 += w;
            s1 += w * t;
            s2 += w * (t * t + v);
            s3 += linear;
            s4 += linear * t;
            s5 += known * (centred * mean - log_cosh);
        }
        float *out = sums + N_SUMS * i;
        out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3, out[4] = s4, out[5] = s5;
    }
}
