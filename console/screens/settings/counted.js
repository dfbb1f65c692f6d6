import { html, useEffect, useRef, useState } from '../../lib/html.js'
import { busy } from '../../lib/session.js'
import { Problem } from '../../parts/load.js'

/**
 * Counts something page by page of a call, shows what is known so far, and can be stopped.
 * @param submit text of the button; @param page takes a token and an AbortSignal, and resolves with { part, next }
 * @param add joins the sum and a part; @param show makes elements of the sum, and whether all is counted
 */
export function Counted({ submit, page, add, show }) {
  const [{ sum, running, error, done }, setState] = useState({})
  const abort = useRef()
  useEffect(() => () => abort.current?.abort(), [])
  const count = async () => {
    abort.current = new AbortController()
    const { signal } = abort.current
    let total
    let token
    busy.value++
    setState({ running: true })
    try {
      do {
        const { part, next } = await page(token, signal)
        total = total === undefined ? part : add(total, part)
        token = next
        if (!signal.aborted) setState({ sum: total, running: next !== undefined, done: next === undefined })
      } while (token !== undefined && !signal.aborted)
    } catch (failure) {
      if (!signal.aborted) setState({ sum: total, error: failure })
    } finally {
      busy.value--
    }
  }
  const stop = () => {
    abort.current.abort()
    setState({ sum })
  }
  return html`${sum !== undefined && html`<div role="status">${show(sum, done)}</div>`}
    ${error && html`<${Problem} error=${error} />`}
    <div class="buttons">
      <button type="button" disabled=${running} onClick=${count}>${running ? 'Counting…' : submit}</button>
      ${running && html`<button type="button" onClick=${stop}>Stop</button>`}
    </div>`
}
