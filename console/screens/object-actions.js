// What can be done with selected objects. Each dialog gets { bucket, folder, items, done, refresh, onClose }: `done` leaves
// the selection, `refresh` shows what has become of it.
import { ApiError, sendXml } from '../lib/api.js'
import { eachAtOnce, selectedObjects } from '../lib/below.js'
import { moveObject } from '../lib/copy.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { follow, objectLink, requireReadable } from '../lib/links.js'
import { readTags, writeTags } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { pathOf } from '../lib/signer.js'
import { Dialog } from '../parts/dialog.js'
import { Check, Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { notify, notifyError } from '../parts/notices.js'

/** Requests to the server at the same time. */
const AT_ONCE = 4
const LINK_SECONDS = 300

export async function downloadObject(bucket, key, versionId) {
  const [client, place] = [session.value, { bucket, key, versionId }]
  try {
    await requireReadable(client, place)
    follow(await objectLink(client, place, { seconds: LINK_SECONDS }))
  } catch (error) {
    notifyError(error)
  }
}

/**
 * Works on pages of the selected objects, and tells how many were done, also if it fails or is stopped.
 * @param told makes the notice of that text, { text, undo? }
 * @param work takes a page and a function to be called for each number of objects that is done
 * @param word what was done to them
 */
export async function onSelected({ bucket, items, done, refresh, told }, signal, word, work) {
  let count = 0
  const text = () => `${formatCount(count, 'object')} ${word}`
  try {
    for await (const page of selectedObjects(session.value, bucket, items, signal)) {
      signal.throwIfAborted()
      await work(page, (number = 1) => (count += number))
    }
  } catch (error) {
    if (count > 0) refresh()
    if (signal.aborted || count > 0) notify(`${text()} before the ${signal.aborted ? 'stop' : 'failure'}.`)
    throw error
  }
  const { text: all, undo } = (await told?.(text())) ?? { text: `${text()}.` }
  notify(all, 'done', { undo })
  done()
}

export function Names({ items }) {
  const shown = items.slice(0, 10)
  return html`<ul>
    ${shown.map(({ name, folder }) => html`<li><${Name} text=${name} />${folder ? ' and everything below' : ''}</li>`)}
    ${items.length > shown.length && html`<li>and ${items.length - shown.length} more</li>`}
  </ul>`
}

/** @param failed of what `deleteObjects` returns */
export function refuseFailed([failed]) {
  if (failed) throw new ApiError(failed.code, `${failed.key}: ${failed.message}`)
}

export function CopyObjects({ bucket, folder, items, done, refresh, onClose }) {
  const [copied, setCopied] = useState(0)
  const action = async (values, signal) => {
    const client = session.value
    const [target, prefix, moves] = [values.get('bucket').trim(), values.get('prefix'), values.has('move')]
    if (target === bucket) refuseOverlap(prefix, folder, items)
    await onSelected({ bucket, items, done, refresh }, signal, moves ? 'moved' : 'copied', (page, ready) =>
      eachAtOnce(page, AT_ONCE, async ({ key }) => {
        const to = { bucket: target, key: prefix + key.slice(folder.length) }
        const headers = { 'x-amz-copy-source': pathOf(bucket, key) }
        if (moves) await moveObject(client, { bucket, key }, to, { replace: true }, signal)
        else await sendXml(client, { ...to, method: 'PUT', headers, signal })
        setCopied(ready())
      }),
    )
    onClose()
  }
  const plain = { autocomplete: 'off', spellcheck: false }
  return html`<${Dialog} title="Copy or move objects" onClose=${onClose}>
    <${Form} action=${action} submit="Copy" onCancel=${onClose}>
      <${Names} items=${items} />
      <${Field} label="To bucket" input=${{ name: 'bucket', defaultValue: bucket, required: true, ...plain }} />
      <${Field} label="To prefix" hint="Is put before the names, such as archive/2026/. An object of the same name there is replaced." input=${{ name: 'prefix', defaultValue: folder, ...plain }} />
      <${Check} label="Move: delete each object once its copy exists" input=${{ name: 'move' }} />
      ${copied > 0 && html`<p role="status">${formatCount(copied, 'object')} done</p>`}
    <//>
  <//>`
}

/** Copies of a folder into itself would be copied in turn, without end. */
function refuseOverlap(prefix, folder, items) {
  if (prefix === folder) throw new Error('Source and target are the same.')
  for (const { name, folder: isFolder } of items)
    if (isFolder && (prefix + name.slice(folder.length)).startsWith(name))
      throw new Error(`The target is inside the folder ${name}, which is selected.`)
}

export function TagObjects({ bucket, items, done, refresh, onClose }) {
  const action = async (values, signal) => {
    const client = session.value
    const tag = [values.get('name').trim(), values.get('value')]
    await onSelected({ bucket, items, done, refresh }, signal, 'tagged', (page, ready) =>
      eachAtOnce(page, AT_ONCE, async ({ key }) => {
        const others = (await readTags(client, { bucket, key }, signal)).filter(([name]) => name !== tag[0])
        await writeTags(client, { bucket, key }, [...others, tag], signal)
        ready()
      }),
    )
    onClose()
  }
  return html`<${Dialog} title="Tag objects" onClose=${onClose}>
    <${Form} action=${action} submit="Set tag" onCancel=${onClose}>
      <${Names} items=${items} />
      <${Field} label="Tag" input=${{ name: 'name', required: true, maxlength: 128, autocomplete: 'off' }} />
      <${Field} label="Value" hint="Other tags of the objects stay." input=${{ name: 'value', maxlength: 256, autocomplete: 'off' }} />
    <//>
  <//>`
}
