import { sendJson } from '../lib/api.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { words } from '../lib/words.js'
import { Amount } from '../parts/amount.js'
import { Dialog } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Field, Form } from '../parts/form.js'
import { Known, Reached, stateOptions } from '../parts/known.js'
import { Name } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { Filters, PageLinks, usePages, Words } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Time } from '../parts/time.js'
import { NewTask } from './new-task.js'

const STATES = Object.keys(words.task).filter((state) => state !== 'Recorded')

/** The tasks that the account has posted at the task platform. */
export function Tasks({ query }) {
  const [status, name] = ['status', 'name'].map((filter) => query.get(filter) || undefined)
  const asked = { 'max-items': 100, status, 'task-name': name }
  const tasks = usePages({ path: '/-/task/v1/my-tasks', query: asked }, 'Tasks')
  const [dialog, setDialog] = useState()
  const open = (View) => () => setDialog({ View })
  const close = () => setDialog(undefined)
  const signIn = html`<button type="button" class="main" onClick=${open(PlatformSignIn)}>Sign in at the task platform…</button>`
  const actions = html`<button type="button" onClick=${tasks.reload}>Refresh</button>
    <button type="button" class="main" onClick=${open(NewTask)}>New task…</button>`
  return html`<${Page} title="Tasks" actions=${tasks.value && actions}>
    <p class="quiet">A task offers files to the storage providers of the task platform, who bid for them and make deals.</p>
    ${
      tasks.value &&
      html`<${Filters} query=${query} to=${['tasks']}>
        <${Field} label="State" kind="select" input=${{ name: 'status' }}>
          <option value="">All</option>
          ${stateOptions('task', STATES, status)}
        <//>
        <${Words} label="Name contains" name="name" value=${name} />
      <//>`
    }
    <${Reached}
      of=${tasks}
      ways=${{ PlatformIdentityRequired: signIn, UpstreamAuthFailed: signIn }}
      show=${({
        rows,
        next,
      }) => html`<${Table} caption="Tasks" rows=${rows} keyOf=${({ TaskUuid }) => TaskUuid} columns=${columns} empty=${status || name ? 'There is no such task.' : html`<${NoTasks} create=${open(NewTask)} />`} />
        <${PageLinks} next=${next} />`}
    />
    ${dialog && html`<${dialog.View} done=${tasks.reload} onClose=${close} />`}
  <//>`
}

function NoTasks({ create }) {
  return html`<${Empty} title="This account has posted no task yet." actions=${html`<button type="button" class="main" onClick=${create}>New task…</button>`}>
    Storage providers bid for a task. You choose the best bid, or let the platform choose it.
  <//>`
}

const columns = [
  {
    name: 'Task',
    by: ({ TaskName }) => TaskName,
    cell: ({ TaskUuid, TaskName }) =>
      html`<a href=${linkTo(['tasks', TaskUuid])}><${Name} text=${TaskName || TaskUuid} /></a>`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${Known} kind="task" of=${Status} />` },
  { name: 'Bids', by: ({ BidCount }) => BidCount ?? 0, number: true, cell: ({ BidCount }) => BidCount },
  {
    name: 'Deals',
    number: true,
    cell: ({ DealCount = 0, SuccessfulDealCount = 0 }) => `${SuccessfulDealCount} of ${DealCount} done`,
  },
  {
    name: 'At most, per GiB and epoch',
    number: true,
    cell: ({ MaxPrice }) => html`<${Amount} of=${MaxPrice} />`,
  },
  { name: 'Provider', cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
  {
    name: 'Posted',
    by: ({ CreatedAt }) => CreatedAt ?? '',
    cell: ({ CreatedAt }) => html`<${Time} of=${CreatedAt} />`,
  },
]

/** For a key pair that is not the owner: the server keeps the log-in, encrypted, for its later calls. */
function PlatformSignIn({ done, onClose }) {
  const action = async (values, signal) => {
    const json = { Email: values.get('email').trim(), Password: values.get('password'), Store: true }
    await sendJson(session.value, { path: '/-/task/v1/session', json, signal })
    onClose()
    done()
  }
  return html`<${Dialog} title="Sign in at the task platform" onClose=${onClose}>
    <${Form} action=${action} submit="Sign in" onCancel=${onClose}>
      <p>The server keeps this log-in, encrypted, for later calls of your key pair, and for nobody else.</p>
      <${Field} label="E-mail address" input=${{ name: 'email', type: 'email', required: true, autocomplete: 'off' }} />
      <${Field} label="Password" input=${{ name: 'password', type: 'password', required: true, autocomplete: 'off' }} />
    <//>
  <//>`
}
