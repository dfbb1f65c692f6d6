import { html, signal } from '../lib/html.js'
import { endSessionAfter } from '../lib/session.js'
import { Name } from './name.js'

const notices = signal([])
let last = 0

/** Shows what has happened until the next notice or until it is closed. @param kind `done` or `failed` */
export function notify(text, kind = 'done') {
  notices.value = [...notices.value.slice(-2), { id: ++last, text, kind }]
}

export function notifyError(error) {
  endSessionAfter(error)
  notify(`${error.message}${error.code ? ` (${error.code})` : ''}`, 'failed')
}

/** Where notices appear; screen readers read new ones. */
export function Notices() {
  const close = (id) => {
    notices.value = notices.value.filter((notice) => notice.id !== id)
  }
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.value.map(
      ({ id, text, kind }) => html`<p key=${id} class=${`notice ${kind}`}>
        <span>${kind === 'failed' ? 'Failed: ' : 'Done: '}<${Name} text=${text} /></span>
        <button type="button" class="plain" onClick=${() => close(id)} aria-label="Close this notice">Close</button>
      </p>`,
    )}
  </div>`
}
