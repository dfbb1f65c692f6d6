import { testPlugin } from 'dealgate/testing'
import t from 'tap'
import task from '../../../plugins/task/index.js'

t.test('task keeps the contract of plugins, as a stranger’s does', (t) => testPlugin(t, task))
