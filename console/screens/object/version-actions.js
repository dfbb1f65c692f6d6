import { copyOnto } from '../../lib/copy.js'
import { deleteObjects } from '../../lib/delete.js'
import { formatBytes, formatMoment } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { linkTo } from '../../lib/router.js'
import { headObject } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { isReachable } from '../../lib/signer.js'
import { versioningOf, versionsOf } from '../../lib/versions.js'
import { Dialog } from '../../parts/dialog.js'
import { Form } from '../../parts/form.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { notify, notifyError } from '../../parts/notices.js'
import { downloadObject, refuseFailed } from '../object-actions.js'
import { DeleteVersion } from './delete-version.js'

/** The screen of a version. */
export function versionLink(bucket, { key, versionId, latest }) {
  return linkTo(['buckets', bucket, 'object'], { key, version: latest ? undefined : versionId })
}

/**
 * What can be done with one version.
 * @param changed is called after a change
 * @returns { itemsOf(version), dialog }: the entries of a menu, and the dialog that one of them has opened
 */
export function useVersionActions({ bucket, changed }) {
  const [asked, setAsked] = useState()
  const ask = (View, version) => () => setAsked({ View, version })
  const itemsOf = (version) => {
    const { key, versionId, latest, deleted } = version
    const reached = isReachable(key)
    return [
      reached && { text: 'Open', href: versionLink(bucket, version) },
      reached && !deleted && { text: 'Download', action: () => downloadObject(bucket, key, versionId) },
      reached && !deleted && !latest && { text: 'Restore…', action: ask(RestoreVersion, version) },
      deleted && latest && { text: 'Undelete', action: () => undelete(bucket, version).then(changed, notifyError) },
      {
        text: deleted ? 'Delete the marker…' : 'Delete for ever…',
        danger: true,
        action: ask(DeleteVersion, version),
      },
    ]
  }
  const onClose = () => setAsked(undefined)
  const dialog =
    asked && html`<${asked.View} bucket=${bucket} version=${asked.version} done=${changed} onClose=${onClose} />`
  return { itemsOf, dialog }
}

/** Deletes the delete marker that hides an object. */
export async function undelete(bucket, { key, versionId }) {
  const client = session.value
  refuseFailed((await deleteObjects(client, bucket, [{ key, versionId }], {})).failed)
  // Another marker may be behind it, or nothing.
  const found = await versionsOf(client, bucket, key, { max: 1 }).catch(() => undefined)
  const gone = `The delete marker of ${key} is gone`
  if (found === undefined) return notify(`${gone}.`)
  const [newest] = found.versions
  if (newest && !newest.deleted) return notify(`${key} is back: its delete marker is gone.`)
  notify(`${gone}; ${newest ? 'an earlier one still hides it' : 'it has no version'}.`)
}

/** Makes a version the current one again, as a copy. */
export function RestoreVersion({ bucket, version, done, onClose }) {
  const client = session.value
  const { key, versionId, size, modified } = version
  const place = { bucket, key, versionId }
  const read = async (signal) => {
    const [facts, status] = await Promise.all([headObject(client, place, signal), versioningOf(client, bucket, signal)])
    return { facts, status }
  }
  const known = useLoaded(read, [client, bucket, key, versionId])
  const action = async (_, signal) => {
    const { facts, status } = known.value
    const made = await copyOnto(client, place, facts, {}, signal)
    const undo = made !== undefined &&
      status === 'Enabled' && {
        undo: async () => {
          refuseFailed((await deleteObjects(session.value, bucket, [{ key, versionId: made }], {})).failed)
          done()
        },
      }
    notify(`${key} is as it was on ${formatMoment(modified)}.`, 'done', undo || {})
    onClose()
    done()
  }
  return html`<${Dialog} title="Restore a version" onClose=${onClose}>
    <${Loaded}
      of=${known}
      show=${({ facts, status }) => html`<${Form} action=${action} submit="Restore" onCancel=${onClose}>
        <p>A copy of the version of ${formatMoment(modified)} (${formatBytes(size)}) becomes the current version of <strong><${Name} text=${key} /></strong>.</p>
        <p>${status === 'Suspended' ? 'Versioning is suspended: the copy takes the place of the version null, if there is one, whose bytes are lost.' : 'All versions stay as they are.'}${' '}
          Metadata, tags, rights and encryption come with it; its lock does not: the copy gets the default of the bucket.</p>
        ${['GLACIER', 'DEEP_ARCHIVE'].includes(facts.storageClass) && html`<p class="problem">The bytes of this version are only in deals. Open it, and bring them back first.</p>`}
      <//>`}
    />
  <//>`
}
