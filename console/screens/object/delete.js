import { selectedObjects } from '../../lib/below.js'
import { deleteObjects } from '../../lib/delete.js'
import { formatCount } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { describeLock, lockOf, lockRuleOf } from '../../lib/locks.js'
import { headObject } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { isReachable } from '../../lib/signer.js'
import { countVersions, versioningOf } from '../../lib/versions.js'
import { Confirm, Dialog } from '../../parts/dialog.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { Names, onSelected, refuseFailed } from '../object-actions.js'

/** From so many objects on, the name of the bucket has to be typed. */
const MANY = 100
/** Delete markers of one removal that can be taken back: their names are kept until then. */
const MOST_UNDONE = 10_000

/** What the removal of an object does, by the versioning of its bucket. */
const EFFECTS = {
  Enabled: 'All versions stay: a delete marker hides each object until the marker is deleted.',
  Suspended:
    'Versioning is suspended: a delete marker takes the place of the version null of each object, whose bytes are lost. Versions with an id stay.',
  never: 'This cannot be undone, except in a bucket with versions.',
}

/** Deletes selected objects, which in a bucket with versions hides them. */
export function DeleteObjects({ bucket, items, done, refresh, onClose }) {
  const known = useLoaded((signal) => readKnown(bucket, items, signal), [bucket])
  if (known.value === undefined)
    return html`<${Dialog} title="Delete objects" onClose=${onClose}><${Loaded} of=${known} show=${() => ''} /><//>`
  const { count, status } = known.value
  const action = async (signal) => {
    const client = session.value
    const markers = []
    const told = (text) => tellOf(client, bucket, { text, markers, count, status, refresh })
    await onSelected({ bucket, items, done, refresh, told }, signal, 'deleted', async (page, ready) => {
      const keys = page.map(({ key }) => ({ key }))
      const found = await deleteObjects(client, bucket, keys, {}, signal)
      if (markers.length < MOST_UNDONE) markers.push(...found.markers)
      ready(page.length - found.failed.length)
      refuseFailed(found.failed)
    })
  }
  const word = count >= MANY ? bucket : undefined
  return html`<${Confirm} title="Delete objects" word=${word} submit=${`Delete ${formatCount(count, 'object')}`} action=${action} onClose=${onClose}>
    <p>${formatCount(count, 'object')} of the bucket <strong><${Name} text=${bucket} /></strong> will be deleted. ${EFFECTS[status] ?? EFFECTS.never}</p>
    <${Names} items=${items} />
  <//>`
}

async function readKnown(bucket, items, signal) {
  const client = session.value
  const status = versioningOf(client, bucket, signal)
  let count = 0
  for await (const page of selectedObjects(client, bucket, items, signal)) count += page.length
  return { count, status: await status }
}

/** Says what a removal has left, as the notice about it. @returns { text, undo? } */
async function tellOf(client, bucket, { text, markers, count, status, refresh }) {
  if (markers.length === 0) return { text: `${text}.` }
  const left = markers.length === 1 && count === 1 ? await leftOf(client, bucket, markers[0].key) : ''
  const what =
    left !== ''
      ? `${markers[0].key} now has a delete marker; ${left}.`
      : `${text}: each now has a delete marker; their versions remain${await locksOf(client, bucket)}.`
  // What a marker has replaced does not come back with its end.
  if (status !== 'Enabled' || markers.length < count) return { text: what }
  const undo = async () => {
    const client = session.value
    for (let at = 0; at < markers.length; at += 1000)
      refuseFailed((await deleteObjects(client, bucket, markers.slice(at, at + 1000), {})).failed)
    refresh()
  }
  return { text: what, undo }
}

/** What remains of an object behind its delete marker; '' if the caller may not know. */
async function leftOf(client, bucket, key) {
  const found = await countVersions(client, bucket, key).catch(() => undefined)
  if (found === undefined) return ''
  const { count, more, newest } = found
  const lock = newest && isReachable(key) && (await readLock(client, { bucket, key, versionId: newest.versionId }))
  const kept = lock ? `, of which the newest is ${describeLock(lock)?.replace('Locked', 'locked') ?? 'not locked'}` : ''
  const versions = `${more ? 'more than ' : ''}${formatCount(count, 'version')} ${count === 1 ? 'remains' : 'remain'}`
  return `${versions}${kept} (“Show versions and deleted” lists ${count === 1 ? 'it' : 'them'})`
}

/** In a bucket with object lock, that some may be locked. */
async function locksOf(client, bucket) {
  const rule = await lockRuleOf(client, bucket).catch(() => undefined)
  return rule === undefined ? '' : ', and those that are locked stay until their locks end'
}

/** How a version is locked; undefined if it is not, or if the caller may not know. */
async function readLock(client, place) {
  const facts = await headObject(client, place).catch(() => undefined)
  const lock = facts && lockOf(facts.headers)
  return lock && describeLock(lock) !== undefined ? lock : undefined
}
