import { effect, html, signal } from '../lib/html.js'
import { route } from '../lib/router.js'
import { endSessionAfter } from '../lib/session.js'
import { Icon } from './icon.js'
import { Name } from './name.js'

/** What is younger than this when the screen changes was told about that change, and stays, ms. */
const NEW_MS = 2000

const notices = signal([])
let last = 0

/**
 * Shows what has happened, until the screen changes or it is closed.
 * @param kind `done` or `failed`; @param undo takes it back, a function that may be async
 */
export function notify(text, kind = 'done', { undo } = {}) {
  // Only the last change can be taken back: an earlier one may be what it builds on.
  const before = notices.value.slice(-2).map((notice) => (undo ? { ...notice, undo: undefined } : notice))
  notices.value = [...before, { id: ++last, text, kind, undo, at: Date.now() }]
}

export function notifyError(error) {
  endSessionAfter(error)
  notify(`${error.message}${error.code ? ` (${error.code})` : ''}`, 'failed')
}

function close(id) {
  notices.value = notices.value.filter((notice) => notice.id !== id)
}

let path = route.peek().path
effect(() => {
  if (route.value.path === path) return
  path = route.value.path
  const since = Date.now() - NEW_MS
  notices.value = notices.peek().filter(({ at }) => at > since)
})

/** Where notices appear; screen readers read new ones. */
export function Notices() {
  const takeBack = async ({ id, undo }) => {
    close(id)
    await Promise.resolve().then(undo).catch(notifyError)
  }
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.value.map(
      (notice) => html`<div key=${notice.id} class=${`notice ${notice.kind}`}>
        <span>${notice.kind === 'failed' ? 'Failed: ' : 'Done: '}<${Name} text=${notice.text} /></span>
        <span class="buttons">
          ${notice.undo && html`<button type="button" onClick=${() => takeBack(notice)}>Undo</button>`}
          <button type="button" class="sign" onClick=${() => close(notice.id)} aria-label="Close this notice"><${Icon} of="close" /></button>
        </span>
      </div>`,
    )}
  </div>`
}
