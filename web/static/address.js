// The addresses of this page: `/c/u:5` is a conversation, `/c/u:5/m/123` a message of it, by the id of the person's own row. In a group
// everybody's row has another id, so a link to a message there names it as all copies do: `/c/g:7/m/10002:CLIENT_ID`.

const CONVERSATION = /^\/c\/([ug]:[1-9]\d*)(?:\/m\/(\d+)(?::([\da-f-]{36}))?)?$/;
const PAGE = /^\/(moments|contacts)$/;

/** What an address names: {id, at, page}; `at`: the message. */
export function named(path) {
  const [, id = null, first, client_id] = path.match(CONVERSATION) ?? [];
  const [, page = null] = path.match(PAGE) ?? [];
  const number = Number(first);
  return { id, page, at: !first ? null : client_id ? { sender: number, client_id } : { message_id: number } };
}

/** The address of a conversation, or of a message of it: {message_id}, else {sender, client_id}. */
export function pathOf(id, { message_id, sender, client_id } = {}) {
  const message = message_id ?? (client_id && `${sender}:${client_id}`);
  return !id ? "/" : message ? `/c/${id}/m/${message}` : `/c/${id}`;
}

/** The whole address of a message, to be given to others who have it. */
export function linkTo({ conversation, message_id, sender, client_id }) {
  const of = conversation.startsWith("g:") ? { sender, client_id } : { message_id };
  return location.origin + pathOf(conversation, of);
}

/** Whether a link leads to a part of this page. */
export const isOwn = ({ origin, pathname }) => origin === location.origin && Boolean(named(pathname).id || named(pathname).page);
