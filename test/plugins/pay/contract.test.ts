import { testPlugin } from 'dealgate/testing'
import t from 'tap'
import pay from '../../../plugins/pay/index.js'

t.test('pay keeps the contract of plugins, as a stranger’s does', (t) => testPlugin(t, pay))
