import { sendJson } from '../lib/api.js'
import { selectedObjects } from '../lib/below.js'
import { withClientToken } from '../lib/client-token.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { writeObject } from '../lib/s3-text.js'
import { selection } from '../lib/selection.js'
import { session } from '../lib/session.js'
import { Check, Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { Words } from '../parts/pages.js'
import { linesOf, OPERATIONS, Parameters, parametersOf, tagOf } from './batch-operations.js'

/** Most objects of a selection: their keys are in one manifest, in the memory of the page. */
const MAX_SELECTED = 100_000

/** Orders a batch job for a selection, the objects that a filter chooses, or those of an inventory. */
export function NewBatch({ query }) {
  const bucket = query.get('bucket') ?? ''
  const manifest = query.get('manifest') ?? ''
  const chosen = query.has('selected') && selection.value?.bucket === bucket ? selection.value : undefined
  const [operation, setOperation] = useState('Tag')
  const { does, costs, danger } = OPERATIONS[operation]
  const order = async (values, signal) => {
    const text = (name) => values.get(name)?.trim() || undefined
    const source = manifest
      ? { Manifest: { Format: 'S3InventoryReport_CSV_20161130', Bucket: bucket, Key: manifest } }
      : chosen
        ? { Manifest: await manifestOf(chosen, text('report') ?? bucket, signal) }
        : { Filter: filterOf(values) }
    const json = {
      ...{ Operation: operation, ...parametersOf(operation, values), ...source },
      ...(text('report') && { Report: { Bucket: text('report'), Prefix: text('report-prefix') } }),
      Description: text('description'),
      ...(values.has('dry') ? { DryRun: true } : { ConfirmationRequired: true }),
    }
    const request = { path: '/-/batch/v1', json }
    const { JobId } = await withClientToken(request, (headers) =>
      sendJson(session.value, { ...request, headers, signal }),
    )
    goTo(['batch', JobId])
  }
  return html`<${Crumbs} links=${[{ href: linkTo(['batch']), text: 'Batch jobs' }, { href: linkTo(['batch', 'new']), text: 'New' }]} />
    <${Page} title="New batch job">
      <p>One thing is done to many objects. The job first finds them and says how many there are${costs ? ' and what they cost' : ''}; it runs when you confirm that.</p>
      <${Form} key=${String(query)} action=${order} submit=${html`Find the objects…`}>
        <fieldset>
          <legend>Objects</legend>
          ${
            manifest
              ? html`<p>Those of the inventory <a href=${linkTo(['buckets', bucket, 'object'], { key: manifest })}><${Name} text=${`${bucket}/${manifest}`} /></a>.</p>`
              : chosen
                ? html`<p>${describe(chosen)} of the bucket <${Name} text=${bucket} />. Their keys are stored as a manifest in the bucket of the report.</p>`
                : html`<${FilterFields} bucket=${bucket} prefix=${query.get('prefix') ?? ''} />`
          }
        </fieldset>
        <fieldset>
          <legend>What is done</legend>
          <${Field} label="Operation" kind="select" input=${{ value: operation, onChange: ({ target }) => setOperation(target.value) }}>
            ${Object.entries(OPERATIONS).map(([name, { text }]) => html`<option value=${name}>${text}</option>`)}
          <//>
          <p class="hint">The job ${does}.${danger ? ' This cannot be undone.' : ''}${costs ? ' It can cost money, within the caps of the day.' : ''}</p>
          <${Parameters} of=${operation} />
        </fieldset>
        <fieldset>
          <legend>Report</legend>
          <div class="filters">
            <${Field} label="Bucket of the report" hint="Empty: no report." input=${{ name: 'report', defaultValue: bucket, autocomplete: 'off', spellcheck: false }} />
            <${Words} label="Prefix of its keys" name="report-prefix" value="batch-reports" />
          </div>
          <${Field} label="Description" input=${{ name: 'description', maxlength: 256, autocomplete: 'off' }} />
          <${Check} label="Only count (dry run)" hint="Says how many there are, and how many would fail. Changes nothing." input=${{ name: 'dry' }} />
        </fieldset>
      <//>
    <//>`
}

function describe({ items }) {
  const folders = items.filter(({ folder }) => folder).length
  const objects = items.length - folders
  const parts = [
    objects > 0 && formatCount(objects, 'selected object'),
    folders > 0 && `all below ${formatCount(folders, 'selected folder')}`,
  ]
  return parts.filter(Boolean).join(' and ')
}

function FilterFields({ bucket, prefix }) {
  const number = (label, name) => html`<${Field} label=${label} input=${{ name, type: 'number', min: 0 }} />`
  return html`<div class="filters">
      <${Field} label="Bucket" input=${{ name: 'bucket', defaultValue: bucket, required: true, autocomplete: 'off', spellcheck: false }} />
      <${Field} label="Keys begin with" input=${{ name: 'prefix', defaultValue: prefix, autocomplete: 'off', spellcheck: false }} />
      <${Words} label="Keys end with" name="suffix" />
      <${Words} label="Storage class" name="class" />
      ${number('Older than days', 'older')} ${number('Newer than days', 'newer')}
      ${number('Larger than bytes', 'larger')} ${number('Smaller than bytes', 'smaller')}
      <${Field} label="Versions" kind="select" input=${{ name: 'versions' }}>
        <option value="">Current</option><option value="Noncurrent">Noncurrent</option><option value="All">All</option>
      <//>
    </div>
    <${Field} label="With these tags" kind="textarea" hint="One on each line: name=value, or a name for any value. An object must have all." input=${{ name: 'tags', rows: 2, spellcheck: false }} />`
}

function filterOf(values) {
  const text = (name) => values.get(name)?.trim() || undefined
  const list = (name) => text(name) && [values.get(name)]
  const number = (name) => text(name) && Number(text(name))
  const tags = linesOf(values.get('tags') ?? '').map((line) => (line.includes('=') ? tagOf(line) : { Key: line }))
  const filter = {
    ...{ Bucket: text('bucket'), Prefixes: list('prefix'), Suffixes: list('suffix'), StorageClasses: list('class') },
    ...{ OlderThanDays: number('older'), NewerThanDays: number('newer') },
    ...{ SizeGreaterThan: number('larger'), SizeLessThan: number('smaller'), Versions: text('versions') },
    ...(tags.length > 0 && { Tags: tags }),
  }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}

/** Stores the keys of a selection, in the form of S3, and names them as a manifest. */
async function manifestOf({ bucket, items }, into, signal) {
  const client = session.value
  const lines = []
  for await (const page of selectedObjects(client, bucket, items, signal)) {
    lines.push(...page.map(({ key }) => `${bucket},${encodeURIComponent(key)}\n`))
    if (lines.length > MAX_SELECTED)
      throw new Error(`There are more than ${MAX_SELECTED.toLocaleString()} objects: choose them by a filter.`)
  }
  const key = `batch-manifests/${new Date().toISOString()}-${crypto.randomUUID().slice(0, 8)}.csv`
  await writeObject(client, into, key, lines.join(''), signal)
  return { Format: 'S3BatchOperations_CSV_20180820', Fields: ['Bucket', 'Key'], Bucket: into, Key: key }
}
