import { formatCount, formatMoment } from '../lib/format.js'
import { html } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { Field, Form } from '../parts/form.js'

/**
 * Goes to what was current at a time, and says what that can show.
 * @param at the time that is shown, ms since 1970; @param looked how many versions were read for it
 */
export function Past({ bucket, prefix, at, looked }) {
  const show = async (values) => {
    const time = new Date(values.get('at'))
    if (Number.isNaN(time.getTime())) throw new Error('Choose a day and a time.')
    goTo(['buckets', bucket, 'versions'], { prefix, at: time.toISOString() })
  }
  const form = html`<${Form} action=${show} submit="Show">
    <${Field} label="As it was at" hint="In the time zone of this browser." input=${{ type: 'datetime-local', step: 1, name: 'at', required: true, defaultValue: at === undefined ? '' : inputTime(at) }} />
  <//>`
  if (at === undefined) return html`<details><summary>As it was at a time…</summary>${form}</details>`
  return html`<p>
      <strong>As it was on ${formatMoment(at)}.</strong>
      ${looked !== undefined && ` Found among ${formatCount(looked, 'version and marker', 'versions and markers')}. `}
      What was deleted for ever since is missing, and so is what was replaced while versioning was off or suspended. A folder may
      have been empty then.${' '}
      <a href=${linkTo(['buckets', bucket, 'versions'], { prefix })}>Show all versions</a>
    </p>
    <details><summary>Another time…</summary>${form}</details>`
}

/** A time as inputs take it, in the time zone of the browser, of whole seconds. */
export function inputTime(time) {
  const date = new Date(Math.ceil(time / 1000) * 1000)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
