/** Replies of operations. */
export { empty, noContent, xml } from '../../http/reply.js'
