import { formatBytes, formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { listObjects } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { Form } from '../parts/form.js'

/** Counts the objects of a bucket and their bytes, page by page: no call of S3 returns them. */
export function BucketSize({ bucket }) {
  const [count, setCount] = useState()
  const action = async (_, signal) => {
    let [objects, bytes, token] = [0, 0, undefined]
    do {
      const page = await listObjects(session.value, bucket, { token, delimiter: '' }, signal)
      objects += page.objects.length
      bytes += page.objects.reduce((sum, { size }) => sum + size, 0)
      token = page.next
      setCount({ objects, bytes, done: token === undefined })
    } while (token !== undefined)
  }
  return html`<h2>Size</h2>
    ${count && html`<p role="status">${formatCount(count.objects, 'object')}, ${formatBytes(count.bytes)}${count.done ? '' : ' so far'}</p>`}
    <${Form} action=${action} submit="Count objects and bytes" />`
}
