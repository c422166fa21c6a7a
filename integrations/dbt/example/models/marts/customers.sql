{{ config(schedule='1 minute') }}

select
    c.customer_id,
    c.first_name,
    c.last_name,
    count(o.order_id) as orders,
    sum(o.amount) as lifetime_value
from {{ ref('stg_customers') }} as c
left join {{ ref('orders') }} as o on o.customer_id = c.customer_id
group by c.customer_id, c.first_name, c.last_name
