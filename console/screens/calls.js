import { ApiError, send, sendJson } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { formatBytes, formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notifyError } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { Facts, Table } from '../parts/table.js'

/** Parameters that the console sets itself, or has no use for. */
const OWN = ['format', 'x-amz-client-token', 'Prefer', 'continuation-token']

/** Reads what every plugin of the server can do, from its own description. */
function useCalls() {
  const client = session.value
  return useLoaded(
    async (signal) => {
      const { paths } = await sendJson(client, { path: '/-/openapi.json', signal })
      return Object.entries(paths).flatMap(([route, methods]) =>
        Object.entries(methods)
          .filter(([, { operationId }]) => operationId)
          .map(([method, call]) => describe(route, method.toUpperCase(), call)),
      )
    },
    [client],
  )
}

function describe(route, method, { operationId, tags, summary, parameters = [], requestBody }) {
  const [path, sub] = route.split('#')
  const body = requestBody?.content ?? {}
  return {
    id: operationId,
    plugin: tags[0],
    name: operationId.split('_')[1],
    summary,
    method,
    path,
    sub,
    parameters: parameters.filter(({ name }) => name !== sub && !OWN.includes(name)),
    takesToken: parameters.some(({ name }) => name === 'x-amz-client-token'),
    schema: body['application/json']?.schema,
    file: body['application/octet-stream'] !== undefined,
  }
}

/** All calls beyond S3, of all plugins. */
export function Calls() {
  const calls = useCalls()
  const [words, setWords] = useState('')
  return html`<${Page} title="Calls">
    <p class="quiet">Everything that the plugins of this server can do. Each is a signed request that any client can send.</p>
    <${Loaded}
      of=${calls}
      show=${(all) => {
        const rows = all.filter((call) => has(call, words))
        return html`<div class="toolbar">
            <input type="search" aria-label="Filter the calls" placeholder="Filter by plugin, call or description" autocomplete="off" spellcheck=${false} onInput=${({ target }) => setWords(target.value)} />
            <p class="quiet" role="status">${rows.length < all.length ? `${rows.length} of ` : ''}${formatCount(all.length, 'call')}</p>
          </div>
          <${Table} caption="Calls" rows=${rows} keyOf=${({ id }) => id} columns=${columns} empty=${html`<${Empty} title="No call has these words." />`} />`
      }}
    />
  <//>`
}

function has({ plugin, name, summary, path }, words) {
  const text = `${plugin} ${name} ${summary} ${path}`.toLowerCase()
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

const columns = [
  {
    name: 'Call',
    by: ({ name }) => name,
    cell: ({ id, name }) => html`<a href=${linkTo(['calls', id])}><${Name} text=${name} /></a>`,
  },
  { name: 'Plugin', bare: true, by: ({ plugin }) => plugin, cell: ({ plugin }) => html`<${Name} text=${plugin} />` },
  { name: 'Description', bare: true, cell: ({ summary }) => html`<${Name} text=${summary} />` },
]

/** One call: a form of its parameters, which the address can fill in for a call that reads, and its answer. */
export function Call({ params: { id }, query }) {
  const calls = useCalls()
  return html`<${Crumbs} links=${[{ href: linkTo(['calls']), text: 'Calls' }, { href: linkTo(['calls', id]), text: html`<${Name} text=${id} />` }]} />
    <${Page} title=${`Call ${id}`} heading=${html`<${Name} text=${id.split('_')[1] ?? id} />`}>
      <${Loaded}
        of=${calls}
        show=${(all) => {
          const call = all.find((one) => one.id === id)
          return call
            ? html`<${Known} key=${`${id}?${query}`} call=${call} given=${query} />`
            : html`<p>No plugin of this server has this call.</p>`
        }}
      />
    <//>`
}

function Known({ call, given }) {
  const [answer, setAnswer] = useState()
  const [asked, setAsked] = useState()
  const reads = call.method === 'GET'
  const run = async (request, signal) => setAnswer({ request, ...(await answerOf(request, signal)) })
  const submit = async (values, signal) => {
    const request = requestOf(call, values)
    if (reads) await run(request, signal)
    else setAsked(request)
  }
  const next = () => {
    const query = { ...answer.request.query, 'continuation-token': answer.document.NextContinuationToken }
    run({ ...answer.request, query }).catch(notifyError)
  }
  return html`<p><${Name} text=${call.summary} /></p>
    <p class="quiet"><code>${call.method} <${Name} text=${`${call.path}${call.sub ? `?${call.sub}=` : ''}`} /></code></p>
    <${Form} action=${submit} submit=${reads ? 'Send' : 'Continue…'}>
      ${call.parameters.map((parameter) => html`<${Input} key=${parameter.name} ...${inputOf(parameter)} value=${reads ? given.get(parameter.name) : undefined} />`)}
      ${Object.entries(call.schema?.properties ?? {}).map(([name, schema]) => html`<${Input} key=${name} ...${{ name, schema, hint: schema.description, required: call.schema.required?.includes(name) }} />`)}
      ${call.file && html`<${Field} label="File" input=${{ type: 'file', name: ' file', required: true }} />`}
    <//>
    ${asked && html`<${Ask} call=${call} request=${asked} run=${run} onClose=${() => setAsked(undefined)} />`}
    ${
      answer &&
      html`<h2>Answer</h2>
        ${answer.text === undefined ? html`<${Answer} value=${answer.document} />` : html`<pre tabindex="0"><${Name} text=${answer.text} /></pre>`}
        ${answer.document?.IsTruncated && html`<button type="button" onClick=${next}>Next page</button>`}`
    }`
}

function inputOf({ name, required, schema = {}, description }) {
  return { name, required, schema, hint: description ?? schema.description }
}

function Input({ name, schema, hint, required, value }) {
  const kind = kindOf(schema)
  const common = { name, required: required ?? false, autocomplete: 'off', spellcheck: false }
  if (kind === 'choice') {
    return html`<${Field} label=${name} hint=${hint} kind="select" input=${common}>
      <option value="">${required ? 'Choose…' : 'Not stated'}</option>
      ${(schema.enum ?? ['true', 'false']).map((one) => html`<option value=${one} selected=${String(one) === value}>${String(one)}</option>`)}
    <//>`
  }
  if (kind === 'json')
    return html`<${Field} label=${`${name} (JSON)`} hint=${hint} kind="textarea" input=${{ ...common, rows: 3 }} />`
  const secret = /password|secret|accesstoken/i.test(name)
  const type = secret ? 'password' : kind === 'number' ? 'number' : 'text'
  return html`<${Field} label=${name} hint=${hint} input=${{ ...common, type, step: kind === 'number' ? 'any' : undefined, defaultValue: value }} />`
}

function kindOf(schema) {
  if (schema.enum || schema.type === 'boolean') return 'choice'
  if (schema.type === 'integer' || schema.type === 'number') return 'number'
  return schema.type === 'object' || schema.type === 'array' ? 'json' : 'text'
}

/** The request that the form describes. Throws ApiError for JSON that is none. */
function requestOf(call, values) {
  const query = call.sub ? { [call.sub]: '' } : {}
  let { path } = call
  for (const { name, in: place } of call.parameters) {
    const value = String(values.get(name) ?? '')
    if (place === 'path')
      path = path.replace(`{${name}}`, name === 'Key' ? value.split('/').map(uriEncode).join('/') : uriEncode(value))
    else if (value !== '') query[name] = value
  }
  const request = { method: call.method, path, query, takesToken: call.takesToken }
  if (call.schema) request.json = bodyOf(call.schema, values)
  if (call.file) request.file = values.get(' file')
  return request
}

function bodyOf({ properties = {} }, values) {
  const given = Object.entries(properties).filter(([name]) => values.get(name))
  return Object.fromEntries(given.map(([name, schema]) => [name, typed(name, schema, values.get(name))]))
}

function typed(name, schema, text) {
  const kind = kindOf(schema)
  if (schema.type === 'boolean') return text === 'true'
  if (kind === 'number') return Number(text)
  if (kind !== 'json') return text
  try {
    return JSON.parse(text)
  } catch {
    throw new ApiError('InvalidJson', `${name} is not a JSON document.`)
  }
}

/** Sends the request and reads its answer, whatever it is: { document } of JSON, or { text }. */
async function answerOf(request, signal) {
  if (!request.takesToken) return answerWith({}, request, signal)
  return withClientToken(request, (token) => answerWith({ ...token, prefer: 'wait=5' }, request, signal))
}

async function answerWith(headers, { file, json, ...request }, signal) {
  const body = file ? new Uint8Array(await file.arrayBuffer()) : json && JSON.stringify(json)
  const typedAs = file ? 'application/octet-stream' : json && 'application/json'
  const all = { accept: 'application/json', ...headers, ...(typedAs && { 'content-type': typedAs }) }
  const response = await send(session.value, { ...request, headers: all, body, signal })
  const text = await response.text()
  if (!(response.headers.get('content-type') ?? '').includes('json')) return { text }
  return { document: JSON.parse(text) }
}

function Ask({ call, request, run, onClose }) {
  const { method, path, query, json, file } = request
  const body = JSON.stringify(redacted(json), undefined, 2)
  return html`<${Confirm} title=${call.name} submit="Send the request" action=${(signal) => run(request, signal)} onClose=${onClose}>
    <p><${Name} text=${call.summary} /></p>
    <p>This call may change data or cost money. ${call.takesToken && 'Until it has succeeded, the same request carries the same client token, so that the server carries it out once. If its job has failed, retry that in Jobs.'}</p>
    <${Facts}
      facts=${[
        ['Request', html`<code>${method} <${Name} text=${path} /></code>`],
        ...Object.entries(redacted(query)).map(([name, value]) => [
          name,
          value === '' ? 'without a value' : html`<${Name} text=${value} />`,
        ]),
        ['File', file && html`<${Name} text=${file.name} />, ${formatBytes(file.size)}`],
      ]}
    />
    ${body !== '{}' && html`<pre tabindex="0"><${Name} text=${body} /></pre>`}
  <//>`
}

function redacted(members = {}) {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, /password|secret|accesstoken/i.test(name) ? '…' : value]),
  )
}
