/**
 * The plugins that ship with dealgate, by name. All of them run unless the configuration lists others. Each is loaded
 * when it runs.
 */
export const deal = () => import('../plugins/deal/index.js')
export const pay = () => import('../plugins/pay/index.js')
export const task = () => import('../plugins/task/index.js')
