import { ApiError } from '../../lib/api.js'
import { deleteObjects } from '../../lib/delete.js'
import { formatCount } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { lockRuleOf } from '../../lib/locks.js'
import { session } from '../../lib/session.js'
import { allVersions } from '../../lib/versions.js'
import { Confirm } from '../../parts/dialog.js'
import { Check } from '../../parts/form.js'
import { useLoaded } from '../../parts/load.js'
import { Progress } from '../../parts/measure.js'
import { Name } from '../../parts/name.js'
import { notify } from '../../parts/notices.js'
import { Reason } from './delete-version.js'

/** Versions of one request: few enough that the progress is seen. */
const AT_ONCE = 250
/** Refusals that are shown. */
const SHOWN = 10

/**
 * Deletes versions and delete markers: those that are selected, and all of selected keys and below prefixes.
 * @param items [{ name, folder? }]; @param versions [{ key, versionId }]; @param word has to be typed
 */
export function DeleteVersions({ bucket, items = [], versions = [], word, done, onClose }) {
  const [state, setState] = useState()
  const client = session.value
  const rule = useLoaded(async (signal) => ({ of: await lockRuleOf(client, bucket, signal) }), [client, bucket])
  const [bypass, setBypass] = useState(false)
  const [reason, setReason] = useState('')
  const action = async (signal) => {
    const total = { count: 0, kept: 0, refusals: [] }
    setState(total)
    try {
      for await (const page of pagesOf(client, bucket, { items, versions }, signal)) {
        signal.throwIfAborted()
        const { failed } = await deleteObjects(client, bucket, page, { bypass, reason }, signal)
        total.count += page.length - failed.length
        total.kept += failed.length
        total.refusals = [...total.refusals, ...failed].slice(0, SHOWN)
        setState({ ...total })
      }
    } finally {
      done()
    }
    const text = `${formatCount(total.count, 'version and marker', 'versions and markers')} deleted for ever`
    if (total.kept === 0) return notify(`${text}.`)
    throw new ApiError(
      total.refusals[0].code,
      `${text}; ${total.kept.toLocaleString()} could not be deleted, and stay.`,
    )
  }
  return html`<${Confirm} title="Delete versions for ever" word=${word} submit="Delete for ever" action=${action} onClose=${onClose}>
    <p>Of the bucket <strong><${Name} text=${bucket} /></strong>, for ever:</p>
    <ul>
      ${versions.length > 0 && html`<li>${formatCount(versions.length, 'selected version or marker', 'selected versions and markers')}</li>`}
      ${items.map(({ name, folder }) => html`<li>all versions and delete markers ${folder ? (name === '' ? 'of the bucket' : html`below <${Name} text=${name} />`) : html`of <${Name} text=${name} />`}</li>`)}
    </ul>
    <p>Nothing brings them back.${rule.value?.of && ' Versions that are locked stay.'}</p>
    ${rule.value?.of && html`<${Check} label="Also those that are retained in GOVERNANCE mode" hint="Needs the action s3:BypassGovernanceRetention." input=${{ checked: bypass, onChange: (event) => setBypass(event.target.checked) }} />`}
    ${bypass && html`<${Reason} value=${reason} change=${setReason} required />`}
    ${state && html`<${Progress} label="Deleted" text=${`${formatCount(state.count, 'version and marker', 'versions and markers')} deleted`} />`}
    ${state?.kept > 0 && html`<${Refusals} count=${state.kept} first=${state.refusals} />`}
  <//>`
}

async function* pagesOf(client, bucket, { items, versions }, signal) {
  yield* slicesOf(versions)
  for await (const page of allVersions(client, bucket, items, signal)) yield* slicesOf(page)
}

function* slicesOf(versions) {
  for (let at = 0; at < versions.length; at += AT_ONCE)
    yield versions.slice(at, at + AT_ONCE).map(({ key, versionId }) => ({ key, versionId }))
}

function Refusals({ count, first }) {
  return html`<p role="status">${formatCount(count, 'version or marker', 'versions and markers')} could not be deleted:</p>
    <ul>
      ${first.map(({ key, message }) => html`<li><${Name} text=${key} />: <${Name} text=${message} /></li>`)}
      ${count > first.length && html`<li>and ${(count - first.length).toLocaleString()} more</li>`}
    </ul>`
}
