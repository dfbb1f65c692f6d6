const DAY_MS = 86_400_000

/** A line through less than this says nothing about next year. */
const LEAST_MS = DAY_MS
const LEAST_POINTS = 12

/**
 * The straight line that fits points best (least squares).
 * @param points [{ at, value }], in the order of time; `at` is ms since 1970
 * @returns { perDay, value }: how much the line rises in a day, and its value at the last point; undefined for less than
 *   a day, or than 12 points
 */
export function trendOf(points) {
  if (points.length < LEAST_POINTS || points.at(-1).at - points[0].at < LEAST_MS) return undefined
  const mean = (of) => points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [middle, height] = [mean(({ at }) => at), mean(({ value }) => value)]
  const spread = mean(({ at }) => (at - middle) ** 2)
  const slope = mean(({ at, value }) => (at - middle) * (value - height)) / spread
  return { perDay: slope * DAY_MS, value: height + slope * (points.at(-1).at - middle) }
}

/**
 * When free space that goes on as it did is used up.
 * @param points as for `trendOf`, of free bytes
 * @returns { at?, perDay }: ms since 1970, absent if that is later than in a year, or never; undefined without a trend
 */
export function fullAt(points) {
  const trend = trendOf(points)
  if (trend === undefined) return undefined
  const days = points.at(-1).value / -trend.perDay
  return { perDay: trend.perDay, ...(days >= 0 && days <= 365 && { at: points.at(-1).at + days * DAY_MS }) }
}
