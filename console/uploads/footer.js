import { formatBytes, formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo, route } from '../lib/router.js'
import { continueAll, pauseAll, sentBytes, totals, uploads } from './queue.js'

export function Buttons({ onCancel }) {
  const idle = uploads.value.every(({ state }) => ['paused', 'failed'].includes(state.value))
  return html`<div class="buttons">
    ${idle ? html`<button type="button" onClick=${continueAll}>Continue uploads</button>` : html`<button type="button" onClick=${pauseAll}>Pause uploads</button>`}
    ${onCancel && html`<button type="button" onClick=${onCancel}>Cancel uploads</button>`}
  </div>`
}

/** How far all uploads are. Screen readers hear of it at every tenth. */
export function Summary() {
  const { files, bytes, doneFiles } = totals.value
  const failed = uploads.value.filter(({ state }) => state.value === 'failed').length
  const text = `${doneFiles} of ${formatCount(files, 'file')}, ${formatBytes(sentBytes.value)} of ${formatBytes(bytes)}${failed > 0 ? `, ${failed} failed` : ''}`
  const tenth = bytes === 0 ? 10 : Math.floor((10 * sentBytes.value) / bytes)
  return html`<p>${text}</p>
    <progress max=${Math.max(bytes, 1)} value=${sentBytes.value} aria-label="Uploaded bytes" />
    <p class="unseen" role="status">${tenth * 10} % uploaded</p>`
}

/** Below all screens while there are uploads, but not below their own, and once they are done. */
export function Footer() {
  const { files, doneFiles, skipped } = totals.value
  const [closed, setClosed] = useState(0)
  if (files === 0 || (uploads.value.length === 0 && closed === totals.value)) return undefined
  if (uploads.value.length === 0)
    return html`<section class="transfers" aria-label="Uploads">
      <p role="status">${formatCount(doneFiles - skipped, 'file')} uploaded${skipped > 0 ? `, ${skipped} skipped because they are there already` : ''}.</p>
      <button type="button" onClick=${() => setClosed(totals.value)}>Close</button>
    </section>`
  if (route.value.path === '/uploads') return undefined
  return html`<section class="transfers" aria-label="Uploads">
    <div><${Summary} /></div>
    <${Buttons} />
    <a href=${linkTo(['uploads'])}>Show uploads</a>
  </section>`
}
