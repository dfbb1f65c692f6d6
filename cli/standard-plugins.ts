/** The plugins that are part of S3. They run beside those that the configuration lists, unless it lists `none`. */
export { default as batch } from '../plugins/batch/index.js'
export { default as inventory } from '../plugins/inventory/index.js'
export { default as quota } from '../plugins/quota/index.js'
export { default as encryption } from '../plugins/rewrap/index.js'
export { default as usage } from '../plugins/usage/index.js'
