import { sendJson } from '../../lib/api.js'
import { formatBytes, formatCount } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { linkTo } from '../../lib/router.js'
import { session } from '../../lib/session.js'
import { Name } from '../../parts/name.js'
import { Table } from '../../parts/table.js'
import { Counted } from './counted.js'

const words = ({ Objects, Bytes }) => `${formatCount(Objects, 'object')}, ${formatBytes(Bytes)}`

function add(one, other) {
  const sum = (member) => ({
    Objects: one[member].Objects + other[member].Objects,
    Bytes: one[member].Bytes + other[member].Bytes,
  })
  const Plain = [...one.Plain, ...other.Plain].slice(0, 100)
  return { Encrypted: sum('Encrypted'), NotEncrypted: sum('NotEncrypted'), Plain }
}

/** Counts the objects of a bucket that are not encrypted, on the server, and names the first. */
export function PlainObjects({ bucket }) {
  const page = async (token, signal) => {
    const query = { 'x-encryption': '', 'continuation-token': token }
    const part = await sendJson(session.value, { bucket, query, signal })
    return { part, next: part.NextContinuationToken }
  }
  const columns = [
    {
      name: 'Name',
      cell: ({ Key }) =>
        html`<a href=${linkTo(['buckets', bucket, 'object'], { key: Key })}><${Name} text=${Key} /></a>`,
    },
    { name: 'Size', number: true, by: ({ Size }) => Size, cell: ({ Size }) => formatBytes(Size) },
  ]
  const show = ({ Encrypted, NotEncrypted, Plain }, done) => html`<p>
      ${done ? 'In all' : 'So far'}: not encrypted ${words(NotEncrypted)}; encrypted ${words(Encrypted)}.
    </p>
    ${
      Plain.length > 0 &&
      html`<${Table} caption="Objects that are not encrypted" rows=${Plain} keyOf=${({ Key }) => Key} columns=${columns} />
        <p class="hint">The first ${Plain.length}. A copy of an object onto itself encrypts it; a batch of copies encrypts all.</p>`
    }`
  return html`<h3>Objects that are not encrypted</h3>
    <${Counted} submit="Count what is not encrypted" page=${page} add=${add} show=${show} />`
}
