// A new folder, and new names. Each dialog gets what those of object-actions.js get.
import { ApiError, send } from '../lib/api.js'
import { eachAtOnce, selectedObjects } from '../lib/below.js'
import { moveObject } from '../lib/copy.js'
import { deleteObjects } from '../lib/delete.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { listObjects, without } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { refuseFailed } from './object-actions.js'

/** Requests to the server at the same time. */
const AT_ONCE = 4
/** Objects of one rename that can be taken back: their names are kept until then. */
const MOST_UNDONE = 10_000
const PLAIN = { required: true, autocomplete: 'off', spellcheck: false }

/** A folder is the common beginning of names; an empty object whose name ends with a slash keeps it where there are none. */
export function NewFolder({ bucket, folder, refresh, onClose }) {
  const action = async (values, signal) => {
    const client = session.value
    const key = `${folder}${partOf(values.get('name').replace(/\/$/, ''))}/`
    await refuseTaken(client, bucket, key, signal)
    const headers = { 'if-none-match': '*' }
    const etag = (await send(client, { method: 'PUT', bucket, key, headers, body: '', signal })).headers.get('etag')
    const undo = async () => {
      refuseFailed((await deleteObjects(session.value, bucket, [{ key, etag }], {})).failed)
      notify(`The folder ${key} is gone again.`)
      refresh()
    }
    notify(`The folder ${key} was created.`, 'done', { undo })
    onClose()
    refresh()
  }
  return html`<${Dialog} title="New folder" onClose=${onClose}>
    <${Form} action=${action} submit="Create folder" onCancel=${onClose}>
      <${Field} label="Name of the folder" hint="It is an empty object whose name ends with a slash." input=${{ name: 'name', ...PLAIN }} />
    <//>
  <//>`
}

/** Gives an object, or all objects of a folder, a new last part of their name: a copy each, and then the removal. */
export function RenameObjects({ bucket, items: [item], refresh, done, onClose }) {
  const [count, setCount] = useState(0)
  const [from, old] = lastPart(item.name)
  const end = item.folder ? '/' : ''
  const action = async (values, signal) => {
    const client = session.value
    const to = `${from}${partOf(values.get('name'))}${end}`
    if (to === item.name) throw new Error('This is the name that it has.')
    await refuseTaken(client, bucket, to, signal)
    const moved = []
    try {
      for await (const page of selectedObjects(client, bucket, [item], signal)) {
        const moves = page.map(({ key }) => ({ from: { key }, to: { key: to + key.slice(item.name.length) } }))
        await moveAll(client, bucket, moves, signal, (move) => setCount(moved.push(move)))
      }
    } catch (error) {
      refresh()
      throw error
    }
    const undo = async () => {
      await moveAll(session.value, bucket, moved.toReversed()).finally(refresh)
      notify(`${item.name} has its name again.`)
    }
    notify(`${item.name} is now ${to}.`, 'done', moved.length <= MOST_UNDONE ? { undo } : {})
    onClose()
    done()
  }
  return html`<${Dialog} title=${item.folder ? 'Rename folder' : 'Rename object'} onClose=${onClose}>
    <${Form} action=${action} submit="Rename" onCancel=${onClose}>
      <p>${item.folder ? 'Each object below' : 'The object'} <strong><${Name} text=${item.name} /></strong> is copied to its new name, and then the old one is deleted. In a bucket with versions the old ones stay under the old name.</p>
      <${Field} label="New name" input=${{ name: 'name', defaultValue: old, ...PLAIN }} />
      ${count > 0 && html`<p role="status">${formatCount(count, 'object')} done</p>`}
    <//>
  <//>`
}

/**
 * Moves objects to names that are free, each of `moves` { from: { key, etag? }, to: { key } }.
 * @param onMoved takes what moves one back, as long as nobody else has written it
 */
async function moveAll(client, bucket, moves, signal, onMoved) {
  signal?.throwIfAborted()
  await eachAtOnce(moves, AT_ONCE, async ({ from, to }) => {
    const etag = await moveObject(client, { bucket, ...from }, { bucket, key: to.key }, { replace: false }, signal)
    onMoved?.({ from: { key: to.key, etag }, to: { key: from.key } })
  })
}

/** [what is before the last part, the last part without the slash of a folder]. */
function lastPart(name) {
  const at = name.replace(/\/$/, '').lastIndexOf('/') + 1
  return [name.slice(0, at), name.slice(at).replace(/\/$/, '')]
}

function partOf(text) {
  if (text === '') throw new Error('A name has at least one character.')
  if (text.includes('/')) throw new Error('A slash would make a folder in between: use Copy or move for that.')
  return text
}

/** Nothing may be replaced by the way. @param key one that ends with a slash stands for all below it */
async function refuseTaken(client, bucket, key, signal) {
  const taken = key.endsWith('/')
    ? (await listObjects(client, bucket, { prefix: key, delimiter: '', max: 1 }, signal)).objects.length > 0
    : await send(client, { method: 'HEAD', bucket, key, signal }).catch(without('NotFound'))
  if (taken) throw new ApiError('AlreadyExists', `${key} exists already.`)
}
