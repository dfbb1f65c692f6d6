import { formatBytes, formatSince, formatTime } from '../lib/format.js'
import { html, signal } from '../lib/html.js'

/** Times that are shown move on by themselves. */
const now = signal(Date.now())
setInterval(() => (now.value = Date.now()), 30_000)

/**
 * A time as its distance from now, with the time itself in the title; nothing without a time.
 * @param of what Date takes; @param exact shows the time itself, and the distance behind it
 */
export function Time({ of, exact }) {
  const time = formatTime(of ?? '')
  if (time === '') return undefined
  const since = formatSince(new Date(of).getTime(), now.value)
  return html`<time datetime=${new Date(of).toISOString()} title=${time}>${exact ? `${time} (${since})` : since}</time>`
}

/** A number of bytes, with all its digits in the title. */
export function Bytes({ of }) {
  if (!Number.isFinite(of)) return undefined
  return html`<span title=${`${of.toLocaleString()} bytes`}>${formatBytes(of)}</span>`
}
