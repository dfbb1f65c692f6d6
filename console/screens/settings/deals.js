import { sendJson } from '../../lib/api.js'
import { formatTime } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { linkTo } from '../../lib/router.js'
import { session } from '../../lib/session.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { State } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import { dealDefaults } from './deal-defaults.js'
import { SettingsPage } from './page.js'
import { Setting } from './setting.js'

/** What the deals of a bucket are made on, may cost, and when they are made by themselves. */
export function Deals({ params: { bucket } }) {
  return html`<${SettingsPage} bucket=${bucket} name="Deals">
    <p class="buttons"><a href=${linkTo(['deals'], { bucket })}>Deals of this bucket</a></p>
    <${Setting} bucket=${bucket} kind=${dealDefaults} />
    <${BucketSchedules} bucket=${bucket} />
  <//>`
}

const COLUMNS = [
  { name: 'Id', by: ({ Id }) => Id, cell: ({ Id }) => html`<${Name} text=${Id} />` },
  {
    name: 'When',
    cell: ({ Cron, TimeZone }) => html`<code><${Name} text=${Cron} /></code> <${Name} text=${TimeZone} />`,
  },
  { name: 'State', cell: ({ Enabled }) => html`<${State} of=${Enabled ? 'Enabled' : 'Disabled'} />` },
  { name: 'Next', by: ({ NextDue }) => NextDue ?? '', cell: ({ NextDue }) => formatTime(NextDue) },
  { name: 'Last', by: ({ LastDue }) => LastDue ?? '', cell: ({ LastDue }) => formatTime(LastDue) || 'none yet' },
]

function BucketSchedules({ bucket }) {
  const client = session.value
  const asked = { path: '/-/deal/v1/schedules', query: { bucket, 'max-items': 100 } }
  const schedules = useLoaded((signal) => sendJson(client, { ...asked, signal }), [client, bucket])
  // Without the plugin `deal`, the setting above says so.
  if (schedules.error?.code === 'NotImplemented') return null
  return html`<section class="setting">
    <h2>Schedules</h2>
    <p class="hint">Backups that the server makes by itself, as deals that it pays for.</p>
    <${Loaded}
      of=${schedules}
      show=${({ Schedules }) => html`<${Table} caption="Schedules" rows=${Schedules} keyOf=${({ Id }) => Id} columns=${COLUMNS} empty="There is no schedule." />`}
    />
    <p class="buttons"><a href=${linkTo(['schedules'], { bucket })}>Add, turn off or remove schedules</a></p>
  </section>`
}
