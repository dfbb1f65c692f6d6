import { ApiError } from '../../lib/api.js'
import { deleteObjects } from '../../lib/delete.js'
import { formatBytes, formatMoment } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { isLocked, lockOf, whyKept } from '../../lib/locks.js'
import { headObject } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { isReachable } from '../../lib/signer.js'
import { Confirm, Dialog } from '../../parts/dialog.js'
import { Field } from '../../parts/form.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { notify } from '../../parts/notices.js'
import { refuseFailed } from '../object-actions.js'

/** Deletes one version or delete marker. @param done is called when it is gone */
export function DeleteVersion({ bucket, version, done, onClose }) {
  const { key, versionId, deleted } = version
  const client = session.value
  const place = { bucket, key, versionId }
  const read = async (signal) =>
    deleted || !isReachable(key) ? { hold: false } : lockOf((await headObject(client, place, signal)).headers)
  const lock = useLoaded(read, [client, bucket, key, versionId])
  const [bypass, setBypass] = useState({ reason: '' })
  const title = deleted ? 'Delete a delete marker' : 'Delete a version for ever'
  if (lock.value === undefined)
    return html`<${Dialog} title=${title} onClose=${onClose}><${Loaded} of=${lock} show=${() => ''} /><//>`
  const kept = isLocked(lock.value) ? whyKept(lock.value) : undefined
  if (kept && !kept.bypass) return html`<${Kept} version=${version} text=${kept.text} onClose=${onClose} />`
  const action = async (signal) => {
    const options = kept ? { bypass: true, reason: bypass.reason } : {}
    const { failed } = await deleteObjects(client, bucket, [{ key, versionId }], options, signal)
    if (failed[0]?.code === 'AccessDenied') throw await refusalOf(client, place, failed[0])
    refuseFailed(failed)
    notify(deleted ? `The delete marker of ${key} is gone.` : `A version of ${key} was deleted for ever.`)
    done()
  }
  return html`<${Confirm} title=${title} word=${kept ? key : undefined} submit=${deleted ? 'Delete the marker' : 'Delete for ever'} action=${action} onClose=${onClose}>
    <${Named} version=${version} />
    ${
      deleted
        ? html`<p>${version.latest ? 'The newest of the other versions, if there is one, becomes the current one.' : 'Nothing else changes: newer versions stay.'}</p>`
        : html`<p>Its bytes are gone then, and nothing brings them back.${version.latest && ' The newest of the other versions becomes the current one.'}</p>`
    }
    ${kept && html`<p><strong>${kept.text}</strong></p><${Reason} value=${bypass.reason} change=${(reason) => setBypass({ reason })} required />`}
  <//>`
}

/** Why a version stays, without a way to delete it. */
function Kept({ version, text, onClose }) {
  return html`<${Dialog} title="This version is locked" onClose=${onClose}>
    <${Named} version=${version} />
    <p>${text}</p>
    <div class="buttons"><button type="button" class="main" onClick=${onClose}>Close</button></div>
  <//>`
}

function Named({ version: { key, versionId, modified, size, deleted } }) {
  return html`<p><strong><${Name} text=${key} /></strong>, ${deleted ? 'delete marker' : `version of ${formatBytes(size)}`} of ${formatMoment(modified)} (<code><${Name} text=${versionId} /></code>)</p>`
}

/** Why somebody passes by a lock, or sets one. @param change takes the text */
export function Reason({ value, change, required }) {
  return html`<${Field} label="Reason" hint="S3 keeps no reasons: this one stands in the access log of the bucket, if it has one, as x-reason." input=${{ value, required, maxlength: 256, autocomplete: 'off', onInput: (event) => change(event.target.value) }} />`
}

/** The refusal of a removal, in words that say which lock is the cause. */
async function refusalOf(client, place, { code, message }) {
  const facts = await headObject(client, place).catch(() => undefined)
  const lock = facts && lockOf(facts.headers)
  return new ApiError(code, lock && isLocked(lock) ? `It was not deleted. ${whyKept(lock).text}` : message)
}
