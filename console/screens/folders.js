// A new folder, and new names. Each dialog gets what those of object-actions.js get.
import { ApiError, send, sendXml } from '../lib/api.js'
import { eachAtOnce, selectedObjects } from '../lib/below.js'
import { deleteObjects } from '../lib/delete.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { listObjects, without } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { pathOf } from '../lib/signer.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'

/** Requests to the server at the same time. */
const AT_ONCE = 4
const PLAIN = { required: true, autocomplete: 'off', spellcheck: false }

/** A folder is the common beginning of names; an empty object whose name ends with a slash keeps it where there are none. */
export function NewFolder({ bucket, folder, refresh, onClose }) {
  const action = async (values, signal) => {
    const client = session.value
    const key = `${folder}${partOf(values.get('name').replace(/\/$/, ''))}/`
    await refuseTaken(client, bucket, key, signal)
    await send(client, { method: 'PUT', bucket, key, body: '', signal })
    const undo = async () => {
      await removeAll(client, bucket, [key])
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
  const [copied, setCopied] = useState(0)
  const [from, old] = lastPart(item.name)
  const end = item.folder ? '/' : ''
  const action = async (values, signal) => {
    const client = session.value
    const to = `${from}${partOf(values.get('name'))}${end}`
    if (to === item.name) throw new Error('This is the name that it has.')
    await refuseTaken(client, bucket, to, signal)
    const rename = (source, target, signal) =>
      renameAll(client, bucket, { ...item, name: source }, target, signal, setCopied)
    try {
      await rename(item.name, to, signal)
    } catch (error) {
      refresh()
      throw error
    }
    const undo = async () => {
      await refuseTaken(client, bucket, item.name)
      await rename(to, item.name)
      notify(`${item.name} has its name again.`)
      refresh()
    }
    notify(`${item.name} is now ${to}.`, 'done', { undo })
    onClose()
    done()
  }
  return html`<${Dialog} title=${item.folder ? 'Rename folder' : 'Rename object'} onClose=${onClose}>
    <${Form} action=${action} submit="Rename" onCancel=${onClose}>
      <p>${item.folder ? 'Each object below' : 'The object'} <strong><${Name} text=${item.name} /></strong> is copied to its new name, and then the old one is deleted. In a bucket with versions the old ones stay under the old name.</p>
      <${Field} label="New name" input=${{ name: 'name', defaultValue: old, ...PLAIN }} />
      ${copied > 0 && html`<p role="status">${formatCount(copied, 'object')} done</p>`}
    <//>
  <//>`
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

/** Copies first, all of a page, and deletes after that: what fails in between leaves both, and never none. */
async function renameAll(client, bucket, item, target, signal, onCopied) {
  let count = 0
  for await (const page of selectedObjects(client, bucket, [item], signal)) {
    signal?.throwIfAborted()
    await eachAtOnce(page, AT_ONCE, async ({ key }) => {
      const headers = { 'x-amz-copy-source': pathOf(bucket, key) }
      const copy = { method: 'PUT', bucket, key: target + key.slice(item.name.length) }
      await sendXml(client, { ...copy, headers, signal })
      onCopied(++count)
    })
    await removeAll(
      client,
      bucket,
      page.map(({ key }) => key),
      signal,
    )
  }
}

async function removeAll(client, bucket, keys, signal) {
  const items = keys.map((key) => ({ key }))
  const [failed] = (await deleteObjects(client, bucket, items, {}, signal)).failed
  if (failed) throw new ApiError(failed.code, `${failed.key}: ${failed.message}`)
}
