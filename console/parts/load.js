import { html, useEffect, useRef, useState } from '../lib/html.js'
import { endSessionAfter } from '../lib/session.js'
import { Name } from './name.js'

/** How long after an answer `usePolling` reads again, and at most, ms. */
const AGAIN_MS = 2000
const AGAIN_AT_MOST_MS = 30_000

/**
 * Calls `read` now and whenever a member of `inputs` changes; what an earlier call brings then no longer counts.
 * @param read takes an AbortSignal
 * @returns { value?, error?, failures, loading, reload, replace }: `value` stays while it is read again, and if no
 *   answer comes; `replace` takes one that was read elsewhere, of the same inputs; `failures` counts those in a row
 */
export function useLoaded(read, inputs) {
  const [state, setState] = useState({ loading: true, failures: 0 })
  const [turn, setTurn] = useState(0)
  const former = useRef(inputs)
  useEffect(() => {
    const abort = new AbortController()
    const same = areSame(former.current, inputs)
    former.current = inputs
    setState((old) => ({
      loading: true,
      failures: 0,
      ...(same && old.value !== undefined && { ...old, loading: true }),
    }))
    read(abort.signal).then(
      (value) => abort.signal.aborted || setState({ loading: false, failures: 0, value }),
      (error) => abort.signal.aborted || setState((old) => failed(old, error)),
    )
    return () => abort.abort()
  }, [...inputs, turn])
  const replace = (value) => areSame(former.current, inputs) && setState({ loading: false, failures: 0, value })
  return { ...state, reload: () => setTurn((n) => n + 1), replace }
}

function areSame(inputs, others) {
  return inputs.every((input, i) => Object.is(input, others[i]))
}

/** A refusal takes the place of the value; a server that cannot answer leaves what it has answered before. */
function failed({ value, failures }, error) {
  const stays = error.status === 0 || error.status >= 500
  return { loading: false, error, failures: failures + 1, ...(stays && { value }) }
}

/**
 * Reads again some time after each answer, and later after each failure.
 * @param parts what `useLoaded` returned
 * @param slow true where nothing is expected soon
 */
export function usePolling(active, parts, slow) {
  const waits = active && parts.every(({ loading }) => !loading)
  const failures = Math.max(...parts.map((part) => part.failures))
  useEffect(() => {
    if (!waits) return
    const again = () => {
      for (const { reload } of parts) reload()
    }
    const timer = setTimeout(again, slow ? AGAIN_AT_MOST_MS : Math.min(AGAIN_MS * 2 ** failures, AGAIN_AT_MOST_MS))
    return () => clearTimeout(timer)
  }, [waits, slow, ...parts.map(({ value, error }) => error ?? value)])
}

/** Shows what was loaded, that it is loading, or why it cannot be. @param show makes elements of the value */
export function Loaded({ of, show }) {
  const problem = of.error && html`<${Problem} error=${of.error} retry=${of.reload} />`
  if (of.value !== undefined) return html`${problem}${show(of.value)}`
  return problem ?? html`<p class="quiet" role="status">Loading…</p>`
}

/** An error where its value would be. One that ends the session leads to the sign-in. */
export function Problem({ error, retry }) {
  useEffect(() => endSessionAfter(error), [error])
  const denied = error.code === 'AccessDenied'
  return html`<div class="problem" role="alert">
    <p>
      <strong>${denied ? 'Not allowed' : 'This failed'}: </strong><${Name} text=${error.message} /> (<${Name} text=${error.code ?? error.name} />)
    </p>
    ${error.requestId && html`<p class="quiet">Request <${Name} text=${error.requestId} /></p>`}
    ${retry && !denied && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`
}
