select
    o.order_id,
    o.customer_id,
    o.order_date,
    o.status,
    sum(p.amount) as amount
from {{ ref('stg_orders') }} as o
join {{ ref('stg_payments') }} as p on p.order_id = o.order_id
group by o.order_id, o.customer_id, o.order_date, o.status
